import pytest

from tasks.domain.failures import ErrorClass
from tasks.domain.http_statuses import error_class


@pytest.mark.parametrize("status", [401, 403, 412, 429, 432])
def test_statuses_by_which_a_host_refuses_an_address(status):
    assert error_class(status).blocks


@pytest.mark.parametrize(
    ("status", "expected"),
    [
        (404, ErrorClass.NOT_FOUND),
        (410, ErrorClass.NOT_FOUND),
        (400, ErrorClass.OTHER_STATUS),
        (418, ErrorClass.OTHER_STATUS),
        (500, ErrorClass.SERVER_ERROR),
        (503, ErrorClass.SERVER_ERROR),
    ],
)
def test_other_statuses_say_nothing_about_the_address(status, expected):
    assert error_class(status) is expected
    assert not expected.blocks
