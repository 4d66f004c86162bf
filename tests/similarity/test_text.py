import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from similarity.company import Company
from similarity.preparation.masking import mask_names
from similarity.text import CHARACTERS_PREPARED, NO_TEXT, TextSettings, embedding_text, text_hash, text_to_rank_by

# name, aliases, description, text: names that a simple replacement gets wrong.
AWKWARD_NAMES: list[tuple[str, tuple[str, ...], str, str]] = [
    # one letter, two letters, digits
    ("X Corp.", (), "X Corp. runs a social network. Model X is not its car.", "The company runs a social network. Model X is not its car."),
    ("X", (), "X runs a social network like the letter X.", "The company runs a social network like the letter X."),
    ("HP Inc.", (), "HP Inc. sells printers. HP ink fits.", "The company sells printers. The company ink fits."),
    ("3M Company", (), "3M Company makes tape. Most 3M tape sticks.", "The company makes tape. Most The company tape sticks."),
    ("C&A", (), "C&A sells clothes.", "The company sells clothes."),
    # common words
    ("The Gap, Inc.", (), "The Gap, Inc. sells jeans and fills a gap.", "The company sells jeans and fills a gap."),
    ("Target Corporation", (), "Target Corporation runs stores; we target families.", "The company runs stores; we target families."),
    ("Apple Inc.", (), "Apple Inc. designs phones, not apple juice.", "The company designs phones, not apple juice."),
    ("Energy Inc.", (), "Energy Inc. trades Energy futures.", "The company trades Energy futures."),
    ("Block, Inc.", (), "Block, Inc. takes payments and may block fraud.", "The company takes payments and may block fraud."),
    ("adidas AG", (), "adidas AG makes shoes. Many wear adidas.", "The company makes shoes. Many wear The company."),
    ("eBay Inc.", (), "eBay Inc. runs auctions on eBay.", "The company runs auctions on The company."),
    # legal forms in many languages
    ("Enel S.p.A.", (), "Enel S.p.A. sells power.", "The company sells power."),
    ("Siemens Aktiengesellschaft", (), "Siemens AG makes trains. Siemens's trains run.", "The company makes trains. The company's trains run."),
    ("América Móvil, S.A.B. de C.V.", (), "America Movil, S.A.B. de C.V. sells mobile plans.", "The company sells mobile plans."),
    ("Société Générale Société anonyme", (), "Société Générale Société anonyme lends money.", "The company lends money."),
    ("PT Gudang Garam Tbk", (), "PT Gudang Garam Tbk sells cigarettes.", "The company sells cigarettes."),
    ("Nordea Bank Abp", ("Nordea",), "Nordea lends money.", "The company lends money."),
    ("Türk Hava Yolları A.Ş.", (), "Türk Hava Yolları A.Ş. flies people.", "The company flies people."),
    ("Telefonaktiebolaget LM Ericsson (publ)", ("Ericsson",), "Telefonaktiebolaget LM Ericsson (publ) makes radios.", "The company makes radios."),
    ("OTP Bank Nyrt.", (), "OTP Bank Nyrt. lends money.", "The company lends money."),
    ("Petroleo Brasileiro S.A. - Petrobras", (), "Petroleo Brasileiro S.A. - Petrobras drills for oil.", "The company drills for oil."),
    ("KGHM Polska Miedź Spółka Akcyjna", (), "KGHM Polska Miedz mines copper.", "The company mines copper."),
    ("Hermle Maschinenfabrik GmbH & Co. KG", (), "Hermle Maschinenfabrik GmbH & Co. KG mills metal.", "The company mills metal."),
    ("Malayan Banking Berhad", (), "Malayan Banking Berhad lends.", "The company lends."),
    # CJK, brackets, dots, accents, dashes
    ("トヨタ自動車株式会社", (), "トヨタ自動車株式会社は自動車を製造する。", "The companyは自動車を製造する。"),
    ("株式会社リコー", (), "株式会社リコーは複写機を作る。", "The companyは複写機を作る。"),
    ("(주)카카오", (), "카카오 runs a messenger.", "The company runs a messenger."),
    ("小米集团有限公司", ("Xiaomi",), "Xiaomi sells phones; 小米集团 too.", "The company sells phones; The company too."),
    ("Amazon.com, Inc.", (), "Amazon.com, Inc. sells books. Amazon ships.", "The company sells books. The company ships."),
    ("XDC Industries (Shenzhen) Limited", (), "XDC Industries (Shenzhen) Limited makes parts.", "The company makes parts."),
    ("Nestlé S.A.", (), "Nestle makes chocolate; NESTLÉ S.A. sells it.", "The company makes chocolate; The company sells it."),
    ("Rolls-Royce Holdings plc", (), "Rolls-Royce plc makes engines. Rolls Royce tests them.", "The company makes engines. The company tests them."),
    ("Yahoo!", (), "Yahoo! shows news.", "The company shows news."),
    ("A.P. Møller - Mærsk A/S", ("Maersk",), "A.P. Møller - Mærsk A/S ships boxes on Maersk ships.", "The company ships boxes on The company ships."),
]  # fmt: skip


def company(description: str, name: str = "Acme Ltd.", aliases: tuple[str, ...] = ()) -> Company:
    return Company(id="acme", name=name, description=description, aliases=aliases)


@pytest.mark.parametrize(
    ("name", "aliases", "description", "text"), AWKWARD_NAMES, ids=[row[0] for row in AWKWARD_NAMES]
)
def test_own_names_become_the_company(name: str, aliases: tuple[str, ...], description: str, text: str) -> None:
    assert embedding_text(company(description, name, aliases)) == text


@pytest.mark.parametrize(
    "sentence",
    [
        "Acme Ltd. was founded in 1992 and is headquartered in Shenzhen, the People's Republic of China.",
        "The company was incorporated in 1988 and is based in Port of Spain, Trinidad and Tobago.",
        "The company was formerly known as Foo and Bar Co., Ltd. and changed its name to Acme Ltd. in May 2016.",
        "Its head office is in Lyon.",
        "Acme is headquartered in Boulder.",
        "Acme Ltd. is listed on the London Stock Exchange under the ticker ACM.",
        "Daniel Ek and Martin Lorentzon founded the service in Stockholm in 2006.",
        "Jane Doe started Acme in Cleveland.",
        "Its roots lie in Sydney.",
        "The company sits in Bethesda, Maryland.",
        "Its shares trade in New York.",
        "The company's headquarters are located in Saudi Arabia.",
    ],
)
def test_sentences_on_origin_are_dropped(sentence: str) -> None:
    assert embedding_text(company(f"Acme Ltd. makes anvils. {sentence}")) == "The company makes anvils."


@pytest.mark.parametrize(
    ("description", "text"),
    [
        ("Founded in 1998 and based in Berlin, Acme makes anvils.", "The company makes anvils."),
        ("Acme was founded in 1950 and makes anvils.", "The company was founded in 1950 and makes anvils."),
        ("Acme (NYSE: ACM) makes anvils.", "The company makes anvils."),
        ("Its shops started the group buying of anvils.", "Its shops started the group buying of anvils."),
        ("Acme opened the business of anvils to all, and rents them.", "The company opened the business of anvils to all, and rents them."),
        ("Acme created a market for anvils.", "The company created a market for anvils."),
        ("Acme is based on open standards.", "The company is based on open standards."),
        ("Acme was established to finance housing and lends to builders.", "The company was established to finance housing and lends to builders."),
    ],
)  # fmt: skip
def test_what_a_company_does_is_kept(description: str, text: str) -> None:
    assert embedding_text(company(description)) == text


def test_place_phrases_stay_unless_asked_otherwise() -> None:
    acme = company("Acme makes anvils in Japan and internationally, for smiths.")
    assert "in Japan" in embedding_text(acme)
    assert embedding_text(acme, TextSettings(drop_places=True)) == "The company makes anvils, for smiths."


def test_every_preparation_can_be_switched_off() -> None:
    plain = TextSettings(mask_names=False, drop_origin_sentences=False)
    description = "Acme Ltd. makes anvils. It was founded in 1950."
    assert embedding_text(company(description), plain) == description


@pytest.mark.parametrize(
    "description", ["Acme Ltd.", "Acme was founded in 1950.", "Acme Ltd. was incorporated in Paris.", "?!"]
)
def test_the_text_is_never_empty(description: str) -> None:
    assert embedding_text(company(description)).strip()


words = st.text(st.characters(codec="utf-8", exclude_characters="\0"), min_size=1, max_size=200).filter(str.strip)


@given(name=words, description=words)
def test_any_name_and_description_give_a_text_and_the_same_one_again(name: str, description: str) -> None:
    acme = company(description, name)
    text = embedding_text(acme)
    assert text.strip()
    assert text == embedding_text(acme)


def test_a_long_text_is_prepared() -> None:
    text = embedding_text(company("Acme Ltd. makes anvils in Paris and London. " * 2_400))
    assert text.startswith("The company makes anvils")


SHOES = "Makes hiking boots and climbing shoes for mountaineers. It sells them in outdoor shops."


@pytest.mark.parametrize(
    "description",
    [
        "Shoes." + " " * CHARACTERS_PREPARED + SHOES,
        " ".join(word.ljust(2_000) for word in SHOES.split()),
        "The company was founded in 1998 in Berlin. " * 240 + SHOES,
    ],
    ids=["blanks", "padded words", "sentences on the origin"],
)
def test_a_long_text_of_little_content_is_prepared_whole(description: str) -> None:
    assert text_to_rank_by(company(description)).endswith(SHOES)
    assert embedding_text(company(description)).endswith(SHOES)


def test_the_beginning_of_a_long_text_is_prepared_as_in_the_whole(monkeypatch: pytest.MonkeyPatch) -> None:
    description = "Acme  Ltd. makes \n anvils. Ada Byron founded the\nfirm in 1840.  It ships\n\n" * 400
    beginning = text_to_rank_by(company(description))
    monkeypatch.setattr("similarity.text.CHARACTERS_PREPARED", len(description))
    whole = text_to_rank_by(company(description))
    assert len(whole) > len(beginning) > CHARACTERS_PREPARED / 2
    assert whole.startswith(beginning[:-100])


@pytest.mark.parametrize("settings", [TextSettings(), TextSettings(drop_places=True)])
@pytest.mark.parametrize(
    "run",
    [
        "A" * 2_000,
        "3F2504E0" * 40,
        " " * 190_000,
        "A, " * 5_000,
        " and" * 5_000,
        "A" * 2_000 + "#,本社",
        "Der Sitz ist in Ulm " + "." * 150_000,
    ],
)
def test_no_run_of_characters_makes_the_preparation_try_every_way_to_cut_it(run: str, settings: TextSettings) -> None:
    # Each of these took minutes, or would have taken years.
    for head in ("The company is based in Paris; ", "It was founded in ", "Acme works in Japan"):
        assert embedding_text(company(f"{head}{run}!"), settings)


def test_the_hash_tells_texts_apart_and_is_stable() -> None:
    assert text_hash("anvils") == text_hash("anvils") != text_hash("anvils ")
    assert text_hash("anvils") == "232f246c372d9200db52eafb585a647e"


@pytest.mark.parametrize("name", ["¨", "´", "¯ ¸"])
@pytest.mark.parametrize("text", ["It sells boats. It rents them.", "''"])
def test_a_name_of_nothing_but_accents_is_found_nowhere(name: str, text: str) -> None:
    assert mask_names(text, [name]) == text


def test_names_are_masked_where_an_encoder_reads() -> None:
    text = "Acme makes anvils. " * 2_000
    masked = mask_names(text, ["Acme"])
    assert masked.startswith("The company makes anvils. " * 500)
    assert masked.endswith("Acme makes anvils. ")


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("a b " * 2_500, [" ".join(["a b"] * 122) + f"{number:03}" for number in range(100)]),
        ("a b " * 2_375 + "X", ["a b " * number + "X" for number in range(20, 120)]),
        (("x1" + " group" * 80 + " ") * 20, [f"x{number}" + " group" * 80 for number in range(100)]),
        ("x " * 5_000, [f"{'(' * 250}{' ' * 250}{number}" for number in range(100)]),
    ],
    ids=["repeat the text", "end alike", "groups", "open brackets"],
)
def test_masking_a_hundred_hostile_names_takes_a_moment(text: str, names: list[str]) -> None:
    started = time.process_time()
    mask_names(text, names)
    assert time.process_time() - started < 0.5


def test_of_too_many_names_in_a_text_the_shortest_are_masked() -> None:
    names = [f"Acme {'and Sons ' * 20}{number:03}" for number in range(20)]
    masked = mask_names("Acme makes anvils. " + ". ".join(names), ["Acme", *names])
    assert masked.startswith("The company makes anvils. ")
    assert f"The company {'and Sons ' * 20}000" in masked
    assert masked.count("and Sons") == 15 * 20


@pytest.mark.parametrize(
    "text", ["ACME SI makes nuts.", "Acme Sı makes nuts.", "Acme ſi makes nuts.", "(Acme)-Sí makes nuts."]
)
def test_a_name_is_found_in_other_letters_of_the_same_look(text: str) -> None:
    assert "The company" in mask_names(text, ["Acme Si"])


def test_a_run_of_legal_forms_is_masked_in_parts() -> None:
    company = Company(id="c", name="Zyx inc", description="Zyx" + " inc" * 20 + " sells nuts.")
    masked = embedding_text(company)
    assert masked.startswith("The company")
    assert masked.count("inc") == 12  # eight belong to the name


@pytest.mark.parametrize(
    ("description", "is_enough"),
    [
        ("Acme makes anvils.", False),  # two words beside the name
        ("Acme makes iron anvils.", True),
        ("It is what it is, and so are we.", False),
        ("Acme. " * 100, False),
        ("Acme was founded in 1998 in Munich by Ada Byron.", False),  # nothing is left of it
        ("24 7 365", True),
        ("啤酒", False),
        ("生产啤酒。", True),
        ("Acmeは半導体を製造する。", True),
    ],
)
def test_a_text_to_rank_by_has_three_words_that_say_something(description: str, is_enough: bool) -> None:
    company = Company(id="acme", name="Acme", description=description)
    assert text_to_rank_by(company) == (embedding_text(company) if is_enough else "")
    assert text_hash("") == NO_TEXT
