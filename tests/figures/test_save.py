import pytest

from recombine.errors import BadInput, RecombineError
from recombine.figures.embed import chart_json, policy
from recombine.figures.files import write_whole
from recombine.figures.save import save_figure
from recombine.figures.theme import message_chart


@pytest.mark.parametrize(
    ("ending", "start"),
    [("png", b"\x89PNG"), ("svg", b"<svg"), ("pdf", b"%PDF"), ("html", b"<!DOCTYPE html>"), ("json", b"{")],
)
def test_save(tmp_path, ending, start):
    path = save_figure(message_chart("a <b> & \u8d64"), tmp_path / "new" / f"figure.{ending}")
    assert path.read_bytes().startswith(start)
    assert [file.name for file in path.parent.iterdir()] == [path.name]


def test_an_unknown_ending_is_refused(tmp_path):
    with pytest.raises(BadInput, match=r"\.png, \.svg, \.pdf, \.html or \.json"):
        save_figure(message_chart("x"), tmp_path / "figure.gif")


def test_json_cannot_leave_its_script():
    text = chart_json({"name": "</script><!-- & \u2028", "bad": float("nan"), "list": (float("inf"), 1)})
    assert not set("<>&\u2028") & set(text)
    assert '"bad":null' in text
    assert '"list":[null,1]' in text


def test_the_policy_allows_the_given_scripts_only():
    made = policy("alert(1)")
    assert "default-src 'none'" in made
    assert "'sha256-bhHHL3z2vDgxUt0W3dWQOrprscmda2Y5pLsLg4GF+pI='" in made


def test_a_failed_write_leaves_the_old_file(tmp_path, monkeypatch):
    path = write_whole(tmp_path / "page.html", "old")

    def fail(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("os.replace", fail)
    with pytest.raises(RecombineError, match="No space left"):
        write_whole(path, "new")
    assert path.read_text() == "old"
    assert list(tmp_path.iterdir()) == [path]
