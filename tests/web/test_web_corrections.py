"""Reviews corrected on their pages and by the API: what is asked, refused, shown and taken back."""

from __future__ import annotations

import pytest


def form_of(served, **more):
    return served.post("reviews/1/correct", data={"theme_shown": "", **more})


def test_a_review_is_corrected_on_its_page_and_the_lists_say_so(served):
    answer = form_of(served, voice="news", because="a press text")
    assert answer.status_code == 200
    page = served.get("reviews/1").text
    assert "a press text" in page
    assert "corrected by a person" in served.get("reviews?days=all").text
    assert "news" in served.get("api/reviews?voice=news").text
    form_of(served, hidden="1")
    assert "/reviews/1#" not in served.get("reviews?days=all").text
    assert "/reviews/1#" in served.get("reviews?days=all&corrected=1").text
    form_of(served, action="undo")
    assert "/reviews/1#" not in served.get("reviews?days=all&corrected=1").text


@pytest.mark.parametrize(
    ("sent", "told"),
    [
        ({"voice": "prais"}, "Voice"),
        ({"theme": "zzz"}, "there is no theme"),
        ({"copies": "3", "voice": "news"}, "look again"),
        ({"not_product": "99"}, "of no product 99"),
        ({}, "nothing would change"),
    ],
)
def test_a_wrong_form_is_shown_again_with_what_is_wrong(served, sent, told):
    answer = form_of(served, **sent)
    assert answer.status_code in (400, 422)
    assert told in answer.text
    assert "h-correct" in answer.text


def test_the_api_asks_before_copies_change_and_refuses_what_is_unknown(served):
    def put(number, status, **sent):
        answer = served.session.put(f"{served.address}api/reviews/{number}/correction", json=sent)
        assert answer.status_code == status, answer.text
        return answer.json()

    assert put(1, 200, voice="news", because="so")["stored"]["voice"] == "news"
    assert "linked copies" in put(1, 409, voice="praise", copies=7)["detail"]
    assert "did you mean" in str(put(1, 400, themes=["packagin_damage"]))
    put(1, 422, voice="prais")
    put(999_999, 404, hidden=True)
    answer = served.session.delete(f"{served.address}api/reviews/1/correction")
    assert answer.json()["stored"] is None


def test_a_product_leaves_out_reviews_with_its_words(served):
    given = {"name": "x", "name_shown": "x", "priority": "0", "priority_shown": "0"}
    served.post("products/1/edit", data=given | {"excluded": "退款，坏", "excluded_shown": ""})
    assert "退款" in served.get("products/1/crawl").text
    answer = served.session.patch(f"{served.address}api/products/1", json={"excluded_words": []})
    assert answer.json()["excluded_words"] == []
