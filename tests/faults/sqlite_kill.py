"""The SIGKILL campaign on the embedded index: a writer is killed at random moments, the file is checked.

After every kill the file must open and pass SQLite's own check; every acknowledged batch must be in
it, the batch under way wholly or not at all; words and lookups must fit the documents; and search
must rank as brute force over a scan does. The next writer goes on with the same file, and every
`FRESH_FILE_EVERY` kills with a new one, so that making the file is interrupted too.
"""

import random
import signal
import subprocess
import sys
import time
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from similarity.company import DeletedCompany, EmbeddedCompany
from similarity.index.filters import FieldFilter
from similarity.index.protocol import CompanyIndex
from similarity.index.sqlite import SqliteIndex
from tests.factories import unit_vector
from tests.faults.sqlite_writer import COMPANIES, GENERATION, batch, prepare
from tests.similarity.index.inspection import damage

ROOT = Path(__file__).parents[2]
FRESH_FILE_EVERY = 5
# The first moments after opening (tables, first checkpoint) and the steady state are both reached.
LONGEST_LIFE_SECONDS = (0.02, 0.1, 0.6)

Document = EmbeddedCompany | DeletedCompany


@dataclass
class Campaign:
    """What a campaign did and found; `lost` and `problems` must stay empty."""

    kills: int = 0
    documents: int = 0
    lost: list[str] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)


@dataclass
class WrittenFile:
    """A file under fire: what is acknowledged to be in it, and the number of the next batch."""

    path: Path
    seed: int
    next_batch: int = 1
    documents: dict[str, Document] = field(default_factory=dict)

    def add(self, number: int) -> None:
        self.documents.update({document.id: document for document in batch(self.seed, number)})

    def add_kept(self, stored: dict[str, Document]) -> None:
        """Takes over the batch that was under way at the kill, if any of it is stored: it must be there whole."""
        under_way = {document.id: document.version for document in batch(self.seed, self.next_batch)}
        if any(
            company_id in stored and stored[company_id].version == version for company_id, version in under_way.items()
        ):
            self.add(self.next_batch)
            self.next_batch += 1


def run_campaign(folder: Path, *, runs: int, seed: int) -> Campaign:
    """Kills `runs` writers, one after the other, on files in `folder`."""
    campaign = Campaign()
    choice = random.Random(seed)
    for run in range(runs):
        if run % FRESH_FILE_EVERY == 0:
            file = WrittenFile(folder / f"{run}.db", seed=seed + run)
        life = choice.uniform(0, choice.choice(LONGEST_LIFE_SECONDS))
        # The first one lives long, so that a campaign of few kills has something to lose.
        acknowledged = kill_a_writer(file, after=life if campaign.kills else max(LONGEST_LIFE_SECONDS))
        for number in acknowledged:
            file.add(number)
            campaign.documents += len(batch(file.seed, number))
        file.next_batch += len(acknowledged)
        campaign.kills += 1
        check(file, campaign)
    return campaign


def kill_a_writer(file: WrittenFile, *, after: float) -> list[int]:
    """Starts a writer, kills it so many seconds after it opens the file; the batches it acknowledged."""
    command = [sys.executable, "-m", "tests.faults.sqlite_writer", str(file.path), str(file.seed), str(file.next_batch)]
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as writer:
        assert writer.stdout
        assert writer.stdout.readline() == "opening\n"
        time.sleep(after)
        writer.send_signal(signal.SIGKILL)
        output, errors = writer.communicate()
    assert writer.returncode == -signal.SIGKILL, errors
    return [int(line.split()[1]) for line in output.splitlines(keepends=True) if line.endswith("\n")]


def check(file: WrittenFile, campaign: Campaign) -> None:
    """Opens the file and adds to the campaign whatever is missing or wrong in it."""
    with closing(SqliteIndex(file.path)) as index:
        prepare(index)
        stored = {document.id: document for page in index.scan(GENERATION) for document in page}
        file.add_kept(stored)
        campaign.lost += [f"{file.path.name}: {line}" for line in differences(file.documents, stored)]
        campaign.problems += [f"{file.path.name}: {line}" for line in wrong_answers(index, stored)]
    campaign.problems += [f"{file.path.name}: {line}" for line in damage(file.path)]


def differences(expected: dict[str, Document], stored: dict[str, Document]) -> list[str]:
    """One line per document that is not stored as it was acknowledged."""
    return [
        f"{company_id} should be {_seen(expected.get(company_id))} but is {_seen(stored.get(company_id))}"
        for company_id in sorted(expected.keys() | stored.keys())
        if _seen(expected.get(company_id)) != _seen(stored.get(company_id))
    ]


def wrong_answers(index: CompanyIndex, stored: dict[str, Document]) -> list[str]:
    """What the index answers otherwise than brute force over the stored documents."""
    companies = [document for document in stored.values() if isinstance(document, EmbeddedCompany)]
    french = [document for document in companies if document.company.country == "FR"]
    problems = []
    query = unit_vector(1).astype(np.float64)
    for held, filters in ((companies, ()), (french, (FieldFilter(field="country", any_of=("fr",)),))):
        expected = sorted((-float((document.vector * query).sum()), document.id) for document in held)
        hits = index.similar(GENERATION, unit_vector(1), k=COMPANIES, filters=filters).hits
        if [hit.company.id for hit in hits] != [company_id for _, company_id in expected]:
            problems.append(f"similar with {len(filters)} filters differs from brute force")
    for name in {document.company.name for document in companies}:
        bearers = sorted(document.id for document in companies if document.company.name == name)
        if index.resolve(GENERATION, name) != bearers:
            problems.append(f"resolve({name!r}) differs from a scan")
        if sorted(company.id for company in index.find(GENERATION, name, limit=COMPANIES)) != bearers:
            problems.append(f"find({name!r}) differs from a scan")
    return problems


def _seen(document: Document | None) -> object:
    if isinstance(document, EmbeddedCompany):
        return document.version, document.company, document.vector.tobytes()
    return document
