"""Descriptions say what language they are in, unless there is too little to tell."""

import subprocess
import sys

import pytest

from similarity.preparation.language import UNDECIDED, detect_language, is_readable

TEXTS = {
    "en": "The company develops software for hospitals and sells it to clinics across the region.",
    "de": "Das Unternehmen entwickelt Software für Krankenhäuser und verkauft sie an Kliniken in der ganzen Region.",
    "fr": "La société développe des logiciels pour les hôpitaux et les vend aux cliniques de toute la région.",
    "es": "La empresa desarrolla programas para hospitales y los vende a clínicas de toda la región.",
    "it": "L'azienda sviluppa programmi per gli ospedali e li vende alle cliniche di tutta la regione.",
    "pt": "A empresa desenvolve programas para hospitais e vende-os a clínicas em toda a região.",
    "nl": "Het bedrijf ontwikkelt software voor ziekenhuizen en verkoopt die aan klinieken in de hele regio.",
    "pl": "Firma tworzy oprogramowanie dla szpitali i sprzedaje je klinikom w całym regionie.",
    "zh": "该公司为医院开发软件，并将其出售给整个地区的诊所。",
    "ja": "当社は病院向けのソフトウェアを開発し、地域全体の診療所に販売しています。",
    "ko": "이 회사는 병원용 소프트웨어를 개발하여 지역 전체의 진료소에 판매합니다.",
    "ru": "Компания разрабатывает программное обеспечение для больниц и продаёт его клиникам по всему региону.",
}


@pytest.mark.parametrize("language", TEXTS)
def test_a_sentence_is_recognised(language: str) -> None:
    assert detect_language(TEXTS[language]) == language


@pytest.mark.parametrize(
    "text", ["", "   ", "Anvils", "ACME Ltd.", "12345 67890 12345 67890", "!!! ??? ...", "软件", "\ud800\udfff" * 20]
)
def test_what_is_too_short_to_tell_is_left_undecided(text: str) -> None:
    assert detect_language(text) == UNDECIDED


@pytest.mark.parametrize("text", ["煤炭开采、洗选、销售；火力发电；铁路运输；港口经营", "自動車部品製造"])
def test_a_list_of_products_in_chinese_or_japanese_can_be_read(text: str) -> None:
    language = detect_language(text)
    assert is_readable(text, language, ["en", "zh", "ja"])
    assert not is_readable(text, UNDECIDED, ["en"])
    assert not is_readable("개발 생산 판매 " * 3, UNDECIDED, ["en", "zh", "ja"])


def test_a_language_is_found_where_no_temporary_file_can_be_written() -> None:
    # As on a full disk: no file of this process may grow beyond 1 kB.
    script = (
        "import resource, sys; resource.setrlimit(resource.RLIMIT_FSIZE, (1024, 1024)); "
        "from similarity.preparation.language import detect_language; print(detect_language(sys.argv[1]))"
    )
    done = subprocess.run([sys.executable, "-c", script, TEXTS["de"]], capture_output=True, text=True, check=False)
    assert (done.stdout, done.stderr) == ("de\n", "")


def test_a_long_text_is_judged_by_its_beginning() -> None:
    assert detect_language(TEXTS["de"] * 10 + TEXTS["en"] * 1_000) == "de"


def test_broken_unicode_does_not_hide_the_language() -> None:
    assert detect_language("\ud800" + TEXTS["en"]) == "en"


def test_a_short_english_sentence_is_no_pidgin() -> None:
    assert detect_language("Makes steel pipes for oil wells.") == "en"


def test_english_is_told_from_the_rest() -> None:
    assert [language for language, text in TEXTS.items() if detect_language(text) == "en"] == ["en"]
    assert detect_language("Anvils") != "en"


# Without a letter that English lacks, and with the words that English shares.
PLAIN_LETTERS = (
    "Perusahaan ini mengembangkan perangkat lunak untuk rumah sakit dan menjualnya kepada klinik di seluruh wilayah.",
    "Bedriften utvikler programvare for sykehus, selger den til klinikker i hele regionen og leier ut utstyr til dem.",
    "Het bedrijf of de dochter ervan levert software aan ziekenhuizen, en is met die software in de regio bekend.",
    "Kampuni hii hutengeneza programu za kompyuta kwa hospitali na kuziuza kwa zahanati katika eneo lote.",
    "Die maatskappy ontwikkel sagteware vir hospitale en verkoop dit aan klinieke in die hele streek.",
)


@pytest.mark.parametrize("text", PLAIN_LETTERS)
def test_another_language_in_plain_letters_is_not_taken_for_english(text: str) -> None:
    assert detect_language(text) != "en"
    assert detect_language(text * 3) != "en"


def test_a_few_english_words_do_not_make_a_text_english() -> None:
    assert (
        detect_language(TEXTS["de"].replace("ü", "ue").replace("ä", "ae") + " The Art of the Deal and the Rest") != "en"
    )


@pytest.mark.parametrize("languages", [("en",), ("en", "de"), ("en", "ja", "sv"), ("de",)])
def test_an_encoder_reads_its_languages(languages: tuple[str, ...]) -> None:
    read = {language for language, text in TEXTS.items() if is_readable(text, detect_language(text), languages)}
    assert read == {*languages} & {*TEXTS}


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("insulin pumps", True),
        ("Caisse Régionale de Crédit Agricole Mutuel Sud Rhône Alpes provides banking services in the region.", True),
        ("Toyota (トヨタ自動車) makes passenger cars, trucks and engines.", True),
        ("软件", False),
        ("Ανελκυστήρες", False),
        ("12345", True),
        ("", True),
    ],
)
def test_short_texts_are_read_by_their_script_and_english_words(text: str, expected: bool) -> None:
    assert is_readable(text, detect_language(text), ("en",)) is expected
