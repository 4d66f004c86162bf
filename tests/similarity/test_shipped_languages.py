"""The bundle that ships reads several languages, and compares texts across them."""

import numpy as np
import pytest

from similarity.bundle import ModelBundle, seed_folder
from similarity.encoder import TextEncoder

BREWERS = {
    "en": "Brews lager and ale and sells it to pubs and supermarkets.",
    "de": "Wir brauen Pils und Weißbier und beliefern Gaststätten und Getränkemärkte.",
    "fr": "Nous brassons des bières blondes et ambrées, vendues aux cafés et aux cavistes.",
    "es": "Elaboramos cerveza artesana que se vende en bares y supermercados.",
    "sv": "Vi brygger öl och säljer den till krogar och Systembolaget.",
    "ja": "クラフトビールを醸造し、飲食店や酒販店に販売しています。",
    "zh": "公司酿造啤酒，销往餐馆和超市。",
    "it": "Produciamo birre artigianali per pub, ristoranti e supermercati.",
    "nl": "Wij brouwen bier voor cafés, restaurants en supermarkten.",
    "pt": "Produzimos cerveja vendida em bares, restaurantes e supermercados.",
    "ko": "맥주를 양조하여 주점과 음식점, 마트에 판매합니다.",
}
OTHERS = (
    "Provides savings accounts, mortgages and payment cards to households.",
    "Develops accounting software for small companies.",
    "Flies passengers and cargo on routes within Europe.",
)


@pytest.fixture(scope="module")
def encoder() -> TextEncoder:
    return TextEncoder(ModelBundle.load(seed_folder()))


def test_its_ranker_names_the_languages_that_it_reads() -> None:
    ranker = ModelBundle.load(seed_folder()).manifest.ranker
    assert ranker is not None
    assert {*BREWERS} <= {*ranker.languages}


@pytest.mark.parametrize("language", BREWERS)
def test_a_brewer_is_nearest_to_brewers_of_every_language(encoder: TextEncoder, language: str) -> None:
    vectors = encoder.encode([BREWERS[language], *BREWERS.values(), *OTHERS])
    cosines = vectors[1:] @ vectors[0]
    assert np.min(cosines[: len(BREWERS)]) > np.max(cosines[len(BREWERS) :]) + 0.1
