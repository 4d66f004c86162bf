"""Sentences on founding and head office in other languages; content is never dropped."""

import pytest

from similarity.company import Company
from similarity.preparation.origin_languages import drop_other_origin_sentences
from similarity.text import TextSettings, embedding_text

ORIGINS = [
    "The company wurde 1978 gegründet.",
    "Der Hauptsitz befindet sich in Vancouver, Kanada.",
    "Die Gesellschaft wurde 2010 gegründet und hat ihren Sitz in Ulan-Bator, Mongolei.",
    "Son siège social se trouve à Vancouver, au Canada.",
    "Fondée en 2011, The company a son siège à Minneapolis, dans le Minnesota.",
    "Se constituyó en 2010 y tiene su sede en Ulán Bator, Mongolia.",
    "La empresa se fundó en 1978.",
    "Bolaget bildades 2010 och har sitt huvudkontor i Ulaanbaatar, Mongoliet.",
    "The company grundades 1978.",
    "本社はカナダのバンクーバーにあります。",
    "2001年設立、本社は日本・摂津市。",
    "公司成立于2010年，总部位于蒙古国乌兰巴托。",
]
CONTENT = [
    "The company wurde 1980 als Hersteller von Pumpen gegründet.",
    "Das 2011 gegründete Unternehmen aus Ulm entwickelt Wärmepumpen.",
    "The company ist eine Holding mit Sitz in Singapur, deren Betriebe Chemikalien herstellen.",
    "Créée en 2017, elle a mis au point un logiciel de désidentification des visages.",
    "À toute question clinique, The company apporte une réponse fondée sur les preuves.",
    "Promotora inmobiliaria china fundada en 2010 y con sede en Shanghái.",
    "Med säte i Bogotá odlar bolaget medicinsk cannabis.",
    "2017年に設立され、顔画像の匿名化ソリューションを開発しました。",
    "公司成立于2017年，开发出面部图像去识别化方案。",
    "The company was founded in 1998.",
    "Sitze für Autos und Busse.",
]


@pytest.mark.parametrize("sentence", ORIGINS)
def test_a_sentence_only_on_the_origin_is_dropped(sentence: str) -> None:
    for content in ("The company braut Bier.", "同社はビールを醸造する。"):
        assert drop_other_origin_sentences(f"{content} {sentence}").strip() == content
        assert drop_other_origin_sentences(f"{sentence} {content}").strip() == content


@pytest.mark.parametrize("sentence", CONTENT)
def test_a_sentence_with_content_is_kept(sentence: str) -> None:
    assert drop_other_origin_sentences(f"{sentence} Bier.") == f"{sentence} Bier."


def test_only_the_second_revision_drops_them() -> None:
    company = Company(id="ulm", name="Ulmer Bräu GmbH", description="Ulmer Bräu GmbH braut Bier. Der Sitz ist in Ulm.")
    assert embedding_text(company, TextSettings(revision=1)) == "The company braut Bier. Der Sitz ist in Ulm."
    assert embedding_text(company) == "The company braut Bier."
