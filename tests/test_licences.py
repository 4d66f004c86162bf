"""One licence for all that we ship, and none among the locked dependencies that we do not know."""

import json
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from similarity.bundle import ModelBundle, seed_folder

ROOT = Path(__file__).parents[1]
LOCKS = ROOT / "deploy" / "locks"
LOCKED = re.compile(r"^(?=[a-z0-9])(.+?) *\\?$", re.MULTILINE | re.IGNORECASE)

# SPDX identifiers, and what packages that were made before SPDX call the same licences.
ALLOWED = {
    *("0BSD", "Apache-2.0", "Apache-2.0 WITH LLVM-exception", "BSD-2-Clause", "BSD-3-Clause", "BSL-1.0", "CC0-1.0"),
    *("CNRI-Python", "ISC", "MIT", "MIT-0", "MIT-CMU", "MPL-2.0", "PSF-2.0", "Zlib"),
    *("3-Clause BSD License", "Apache", "Apache 2.0 License", "Apache Software License", "BSD License"),
    *("ISC License (ISCL)", "MIT License", "Mozilla Public License 2.0 (MPL 2.0)"),
    *("Python Software Foundation License",),
}
# Packages that may be used although their metadata name no licence of these, each for one reason.
EXCEPTIONS = {
    "axe-playwright-python": re.compile("UNKNOWN"),  # MIT, says the LICENSE file inside
    "cuda-toolkit": re.compile("UNKNOWN"),  # an empty package that requires those of NVIDIA
    # CUDA, of torch on Linux: proprietary, and never part of what we distribute.
    "nvidia-*": re.compile("LicenseRef-NVIDIA-Proprietary|NVIDIA Proprietary Software"),
}
ENVIRONMENTS = {
    "dev": ("build", "base", "search", "client", "elasticsearch", "dev"),
    "integration": ("kafka", "pipelines", "integration"),
    "training": ("openvino", "training"),
}


def locked(*names: str) -> set[str]:
    """The packages in these lock files that are for this interpreter and platform."""
    lines = (line for name in names for line in LOCKED.findall((LOCKS / f"{name}.txt").read_text(encoding="utf-8")))
    requirements = (Requirement(line) for line in lines)
    return {canonicalize_name(each.name) for each in requirements if each.marker is None or each.marker.evaluate()}


def licences() -> dict[str, str]:
    """The licence of each installed package, as pip-licenses reads it."""
    command = [sys.executable, "-m", "piplicenses", "--from=mixed", "--format=json", "--with-system"]
    found = json.loads(subprocess.check_output(command, text=True))
    return {canonicalize_name(each["Name"]): each["License"] for each in found}


def fits(licence: str) -> bool:
    """Whether one of the alternatives consists of allowed licences."""
    return any(
        all(part.strip(" ()") in ALLOWED or part in ALLOWED for part in re.split(r" AND |; ", alternative))
        for alternative in licence.split(" OR ")
    )


def is_exception(package: str, licence: str) -> bool:
    known = EXCEPTIONS.get("nvidia-*" if package.startswith("nvidia-") else package)
    return known is not None and known.fullmatch(licence) is not None


@pytest.mark.parametrize(
    "environment",
    [
        "dev",
        pytest.param("integration", marks=pytest.mark.integration),
        pytest.param("training", marks=pytest.mark.training),
    ],
)
def test_every_locked_dependency_is_under_an_allowed_licence(environment: str) -> None:
    wanted, found = locked(*ENVIRONMENTS[environment]), licences()
    assert wanted <= found.keys(), f"not installed, so not read: {sorted(wanted - found.keys())}"
    strange = {
        name: found[name] for name in sorted(wanted) if not fits(found[name]) and not is_exception(name, found[name])
    }
    assert not strange, "allow these licences in this file or do without the packages"


def test_every_lock_file_is_read() -> None:
    site = {"docs"}  # tools that nobody installs with the software
    read = {name for names in ENVIRONMENTS.values() for name in names}
    assert read | site == {file.stem for file in LOCKS.glob("*.txt")}


@pytest.mark.parametrize(
    ("licence", "allowed"),
    [
        ("MIT", True),
        ("Apache-2.0 OR GPL-3.0-only", True),
        ("Apache-2.0 AND GPL-3.0-only", False),
        ("Apache Software License; MIT License", True),
        ("GNU General Public License v3 (GPLv3)", False),
        ("UNKNOWN", False),
    ],
)
def test_a_licence_that_nobody_allowed_does_not_fit(licence: str, allowed: bool) -> None:
    assert fits(licence) is allowed


def test_package_images_and_bundle_name_the_licence_of_the_tree() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    assert project["license"] == "Apache-2.0"
    assert "Apache License\n                           Version 2.0" in (ROOT / "LICENSE").read_text(encoding="utf-8")
    assert all((ROOT / file).is_file() for file in project["license-files"])
    for file in (ROOT / "deploy" / "images").glob("*.Dockerfile"):
        assert f'image.licenses="{project["license"]}"' in file.read_text(encoding="utf-8"), file.name


def test_the_notice_names_the_weights_that_ship() -> None:
    bundle, notice = ModelBundle.load(seed_folder()), (ROOT / "NOTICE").read_text(encoding="utf-8")
    assert f"models/{bundle.encoder_id}/" in notice
    assert bundle.manifest.base_model in notice
    assert bundle.manifest.licence == "MIT"
    assert "above copyright notice and this permission notice shall be included" in notice
