"""Judges: each kind on images, and what becomes of those that fail."""

from __future__ import annotations

import dataclasses
import http.server
import json
import threading

import pytest
from PIL import Image

from recombine.errors import BadInput
from recombine.pipelines.folder import ImageFolder, JudgementLog
from recombine.pipelines.judges import endpoint as judge_endpoint
from recombine.pipelines.judges.base import FunctionJudge, Judgement, from_scores, make_judge
from recombine.pipelines.judges.judging import judge_images
from recombine.pipelines.judges.local_model import yes_or_no
from recombine.pipelines.prompts.drawing import draw_prompts


@pytest.fixture
def prompts(pets):
    return draw_prompts("pets", pets, 3, 0)


@pytest.fixture
def folder(tmp_path, prompts):
    """Two images a prompt, the second of the last one blackened by a filter; the first ones are red."""
    made = ImageFolder(tmp_path / "images")
    made.begin({})
    for place, prompt in enumerate(prompts):
        images = [Image.new("RGB", (16, 16), colour) for colour in ("red", "blue")]
        record = {"flagged": [False, place == 2], "seeds": [0, 1], "arrays": []}
        made.write(prompt.name, record, images, {})
    return made


def test_all_concepts_must_match():
    assert from_scores([1.0, 0.7]).success is True
    assert from_scores([1.0, 0.2]).success is False
    # Neither a known no nor a known yes counts: one of them alone would bias the share.
    assert from_scores([None, 0.2]).success is None
    assert from_scores([None, 0.9]).success is None
    assert from_scores([None, 0.9]).error == "not all concepts have an answer"
    assert from_scores([]).success is None


def test_images_without_all_answers_are_left_out_of_both_counts(folder, prompts, silent, pets):
    from recombine.pipelines.recorded_set import load_recorded_set

    def half(image, question):
        red = image.getpixel((0, 0)) == (255, 0, 0)
        return red if question.concept == prompts[0].combination[0] else None

    answers, notes = judge_images(FunctionJudge(half), prompts[:1], folder, silent)
    assert load_recorded_set(pets, prompts[:1], answers, folder).cells.count.tolist() == [0]
    assert notes[0] == "2 of 2 images have no judgement: not all concepts have an answer. They are left out."


def test_blackened_images_are_no_rows(folder, prompts, pets):
    from recombine.pipelines.recorded_set import load_recorded_set

    data = load_recorded_set(pets, prompts, {}, folder)
    assert data.cell.tolist() == [0, 0, 1, 1, 2] and data.kept.tolist() == [True] * 5 + [False]


def test_what_was_asked_is_part_of_an_answer(folder, prompts, silent):
    asked = []

    def judge(image, question):
        asked.append(question.text)
        return True

    judge_images(FunctionJudge(judge), prompts, folder, silent)
    other = [
        dataclasses.replace(
            one, questions=tuple(dataclasses.replace(each, text=f"{each.text}!") for each in one.questions)
        )
        for one in prompts[:1]
    ]
    del asked[:]
    judge_images(FunctionJudge(judge), [*other, *prompts[1:]], folder, silent)
    assert len(asked) == 4 and all(text.endswith("!") for text in asked)
    Image.new("RGB", (16, 16), "green").save(folder.image(prompts[1].name, 0))
    del asked[:]
    judge_images(FunctionJudge(judge), prompts[1:], folder, silent)
    assert len(asked) == 2


def test_another_judge_of_the_same_name_is_another_judge(clip, tmp_path, monkeypatch):
    import importlib
    import shutil
    import sys

    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    files = []
    for said in ("True", "False and 1"):
        (tmp_path / "changing_judge.py").write_text(f"def judge(image, question): return {said}")
        sys.modules.pop("changing_judge", None)
        importlib.invalidate_caches()
        files.append(make_judge("changing_judge:judge").file)
    assert len(set(files)) == 2
    copy = shutil.copytree(clip, tmp_path / "other" / clip.name)
    assert make_judge(f"clip:{copy}").file == make_judge(f"clip:{clip}").file
    weights = bytearray((copy / "model.safetensors").read_bytes())
    weights[-1] ^= 1
    (copy / "model.safetensors").write_bytes(bytes(weights))
    assert make_judge(f"clip:{copy}").file != make_judge(f"clip:{clip}").file


def test_a_function(folder, prompts, silent, pets):
    asked = []

    def red(image, question):
        asked.append(str(question))
        return image.getpixel((0, 0)) == (255, 0, 0) or question.concept == pets.concepts[0]

    answers, notes = judge_images(FunctionJudge(red), prompts, folder, silent)
    assert len(answers) == 5 and len(asked) == 10
    assert all(answers[prompt.name, 0] == Judgement((1.0, 1.0), True) for prompt in prompts)
    assert not any(answers[prompt.name, 1].success for prompt in prompts[:2])
    assert notes == ["1 images were blackened by the pipeline's safety filter and are left out."]
    assert asked[0] == prompts[0].questions[0].text
    again, _ = judge_images(FunctionJudge(red), prompts, folder, silent)
    assert again == answers and len(asked) == 10  # Nothing is asked twice.


def test_a_function_that_raises_is_recorded_and_the_rest_goes_on(folder, prompts, silent):
    broken = True

    def moody(image, question):
        if broken and image.getpixel((0, 0)) == (255, 0, 0):
            raise RuntimeError("no red")
        return 2 if broken and question.prompt == prompts[1].text else True

    moody_judge = FunctionJudge(moody)
    answers, notes = judge_images(moody_judge, prompts, folder, silent)
    assert answers[prompts[0].name, 0].error == "RuntimeError: no red"
    assert "4 of 5 images have no judgement" in notes[0] and "RuntimeError: no red" in notes[0]
    assert "not a bool or a number from 0 to 1" in notes[0]
    broken = False
    later, notes = judge_images(moody_judge, prompts, folder, silent)
    assert all(one.success for one in later.values()) and "blackened" in notes[0]


def test_a_line_that_was_cut_off_does_not_count(tmp_path):
    kept = JudgementLog(tmp_path / "a.jsonl")
    kept.add({"prompt": "a", "image": 0, "success": True})
    with open(kept.path, "a") as file:
        file.write('{"prompt": "b", "ima')
    kept.add({"prompt": "c", "image": 0, "success": True})
    assert set(kept.read()) == {("a", 0), ("c", 0)}


def test_modules_by_name(tmp_path, monkeypatch):
    (tmp_path / "my_judge_module.py").write_text("def always(image, question): return True\nword = 3\n")
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    assert make_judge("my_judge_module:always").name == "my_judge_module:always"
    with pytest.raises(BadInput, match="not a function"):
        make_judge("my_judge_module:word")
    with pytest.raises(BadInput, match="cannot be imported"):
        make_judge("my_judge_module:nothing")
    with pytest.raises(BadInput, match="cannot be imported"):
        make_judge("no_such_module:f")
    for number, line in enumerate(("1 / 0", "raise SystemExit(3)")):
        (tmp_path / f"raising_module_{number}.py").write_text(line)
        with pytest.raises(BadInput, match="cannot be imported"):
            make_judge(f"raising_module_{number}:f")
    for spec in ("", "word", ":x", "clip:"):
        with pytest.raises(BadInput, match="not understood"):
            make_judge(spec)


def test_labels_of_people(tmp_path, folder, prompts, silent):
    path = tmp_path / "labels.csv"
    first, second, third = prompts
    a, b = (question.concept for question in first.questions)
    rows = [
        "prompt,image,concept,success,comment",
        f'"{first.text}",0,{a},1,x',
        f'"{first.text}",0,{b},yes,',
        f"{first.name},1,{a},0.4,",
        f"{first.name},1,{b},1,",
        f"{first.name},1,{b},1,",
        f"{first.name},1,{b},0,three people",
        f'"{second.text}",0,,0,whole',
        f'"{second.text}",1,,1,whole',
        f'"{third.text}",0,,,not yet',
    ]
    path.write_text("\n".join(rows) + "\n")
    answers, notes = judge_images(make_judge(f"file:{path}"), prompts, folder, silent)
    told = [answers[one.name, n].success for one in prompts for n in range(2) if (one.name, n) in answers]
    assert told == [True, False, False, True, None]
    assert answers[first.name, 1].scores == pytest.approx((0.4, 2 / 3))
    assert answers[first.name, 0].scores == (1.0, 1.0) and answers[second.name, 0].scores == ()
    assert "1 of 5 images have no judgement: not labelled." in notes[0]
    assert not (folder.path / "judgements").exists()  # The file may be filled in further.


def test_half_a_label_is_none(tmp_path, folder, prompts, silent):
    path = tmp_path / "labels.csv"
    concepts = [question.concept for question in prompts[0].questions]
    rows = ["prompt,image,concept,success", f"{prompts[0].name},0,{concepts[0]},0"]
    rows += [f"{prompts[0].name},1,{concepts[0]},1", f"{prompts[0].name},1,,0"]
    path.write_text("\n".join(rows) + "\n")
    answers, _ = judge_images(make_judge(f"file:{path}"), prompts[:1], folder, silent)
    assert answers[prompts[0].name, 0].success is None
    assert answers[prompts[0].name, 0].error == "not all concepts are labelled"
    assert answers[prompts[0].name, 1] == Judgement((), False)  # The label of the whole image.


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("prompt,image\na,0\n", "no column 'success'"),
        ("prompt,image,success\na,0,maybe\n", "line 2"),
        ("prompt,image,success\na,x,1\n", "line 2"),
        ("prompt,image,success\na,0,\n", "has no labels"),
    ],
)
def test_labels_that_cannot_be_read(tmp_path, text, said):
    (tmp_path / "labels.csv").write_text(text)
    with pytest.raises(BadInput, match=said):
        make_judge(f"file:{tmp_path / 'labels.csv'}")


def test_missing_labels(tmp_path):
    with pytest.raises(BadInput, match="cannot be read"):
        make_judge(f"file:{tmp_path / 'nothing.csv'}")


def test_clip_compares_with_other_concepts(clip, folder, prompts, silent):
    """The true prompt is right where its own logit is the largest: checked against the model asked one by one."""
    from transformers import CLIPModel, CLIPProcessor

    answers, _ = judge_images(make_judge(f"clip:{clip}"), prompts, folder, silent)
    model, processor = CLIPModel.from_pretrained(clip), CLIPProcessor.from_pretrained(clip)
    for prompt in prompts[:2]:
        with Image.open(folder.image(prompt.name, 0)) as image:
            for place, question in enumerate(prompt.questions):
                texts = [prompt.text, *question.alternatives]
                given = processor(text=texts, images=image, return_tensors="pt", padding="max_length")
                logits = model(**given).logits_per_image[0]
                right = int(logits.argmax()) == 0
                assert (answers[prompt.name, 0].scores[place] > 0.5) == right


def test_a_model_that_answers_questions(vqa, folder, prompts, silent):
    answers, notes = judge_images(make_judge(f"vqa:{vqa}"), prompts, folder, silent)
    assert all(one.success is not None and 0 < one.scores[0] < 1 for one in answers.values())
    assert not any("no judgement" in note for note in notes)
    assert yes_or_no("Yes, there is.") == 1 and yes_or_no("no.") == 0 and yes_or_no("north") is None


def test_a_model_is_loaded_when_it_is_asked_first(vqa, folder, prompts, silent, monkeypatch):
    from recombine.pipelines.judges import local_model

    loads = []
    real = local_model.load_judge
    monkeypatch.setattr(local_model, "load_judge", lambda *given: loads.append(given) or real(*given))
    judge = make_judge(f"vqa:{vqa}")
    assert not loads
    judge_images(judge, prompts, folder, silent)
    assert len(loads) == 1
    judge_images(make_judge(f"vqa:{vqa}"), prompts, folder, silent)
    assert len(loads) == 1  # All is answered.


def test_a_model_that_does_not_fit_is_an_error_and_no_failed_image(clip, folder, prompts, silent, monkeypatch):
    import torch
    from transformers import CLIPModel

    def full(self, *given):
        raise torch.OutOfMemoryError("CUDA out of memory")

    monkeypatch.setattr(CLIPModel, "to", full)
    with pytest.raises(BadInput, match="does not fit on cpu: OutOfMemoryError"):
        judge_images(make_judge(f"clip:{clip}"), prompts, folder, silent)


def test_judges_that_are_no_models(tmp_path, clip):
    with pytest.raises(BadInput, match=r"no config\.json"):
        make_judge(f"clip:{tmp_path}")
    (tmp_path / "config.json").write_text("{}")
    (tmp_path / "pytorch_model.bin").write_text("x")
    with pytest.raises(BadInput, match=r"no safetensors, only pytorch_model\.bin"):
        make_judge(f"vqa:{tmp_path}")


class Endpoint(http.server.BaseHTTPRequestHandler):
    """Says what the test wants, and keeps what it was asked."""

    def do_POST(self):
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        self.server.asked.append((self.path, self.headers.get("Authorization"), body))
        status, text = self.server.say(len(self.server.asked), body)
        self.send_response(status)
        if status == 302:
            self.send_header("Location", "/elsewhere")
        self.end_headers()
        answer = {"choices": [{"message": {"content": text}}]} if text is not None else {"odd": 1}
        self.wfile.write(json.dumps(answer).encode() if status == 200 else b"")

    def log_message(self, *words):
        pass


@pytest.fixture
def server(monkeypatch):
    monkeypatch.setattr(judge_endpoint, "FIRST_WAIT", 0.001)
    made = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Endpoint)
    made.asked = []
    made.url = f"http://127.0.0.1:{made.server_address[1]}/v1"
    threading.Thread(target=made.serve_forever, daemon=True).start()
    yield made
    made.shutdown()
    made.server_close()


def test_an_endpoint(server, folder, prompts, silent, monkeypatch):
    monkeypatch.setenv(judge_endpoint.KEY, "secret")
    server.say = lambda number, body: (503, None) if number == 1 else (200, "Yes.")  # It comes to itself.
    judge = make_judge(f"openai:{server.url}", model="seer")
    answers, _ = judge_images(judge, prompts, folder, silent)
    assert all(one.success for one in answers.values()) and len(server.asked) == 11
    path, key, body = server.asked[-1]
    assert path == "/v1/chat/completions" and key == "Bearer secret" and body["model"] == "seer"
    text, picture = body["messages"][0]["content"]
    assert "in the image?" in text["text"] and picture["image_url"]["url"].startswith("data:image/png;base64,")
    kept = (folder.path / "judgements" / judge.file).read_text()
    assert "secret" not in kept


def test_an_endpoint_that_says_nonsense_is_asked_again_next_time_for_that_only(server, folder, prompts, silent):
    cow = prompts[0].questions[0].text

    def say(number, body):
        asked = body["messages"][0]["content"][0]["text"]
        return 200, "purple" if server.odd and asked.startswith(cow) else "no"

    server.odd, server.say = True, say
    judge = make_judge(f"openai:{server.url}", model="seer")
    first, _ = judge_images(judge, prompts, folder, silent)
    assert "neither yes nor no: 'purple'" in str([one.error for one in first.values()])
    number, server.odd = len(server.asked), False
    second, _ = judge_images(judge, prompts, folder, silent)
    held = sum(cow in [question.text for question in prompt.questions] for prompt in prompts)
    assert 0 < len(server.asked) - number <= 2 * 2 * held < number
    assert all(one.success is False and None not in one.scores for one in second.values())


@pytest.mark.parametrize(("status", "text"), [(500, None), (401, None), (403, "yes")])
def test_an_endpoint_that_is_down_is_recorded_and_left_alone(server, folder, prompts, silent, status, text):
    server.say = lambda number, body: (status, text)
    judge = make_judge(f"openai:{server.url}", model="seer")
    answers, notes = judge_images(judge, prompts, folder, silent)
    assert all(one.success is None for one in answers.values()) and len(answers) == 3
    assert "3 of 5 images have no judgement" in notes[0] and "2 more images were not judged" in notes[1]
    assert all(path == "/v1/chat/completions" for path, _, _ in server.asked)
    assert len(server.asked) == (3 * judge_endpoint.ATTEMPTS if status == 500 else 3)
    assert f"did not answer for 3 images in a row (HTTP {status}" in notes[1]


@pytest.mark.parametrize(("status", "text"), [(200, None), (200, "purple"), (400, None), (422, None), (302, "yes")])
def test_an_endpoint_that_says_odd_things_is_there_all_the_same(server, folder, prompts, silent, status, text):
    server.say = lambda number, body: (status, text)
    answers, notes = judge_images(make_judge(f"openai:{server.url}", model="seer"), prompts, folder, silent)
    assert len(answers) == 5 and all(one.success is None for one in answers.values())
    assert "5 of 5 images have no judgement" in notes[0] and not any("in a row" in note for note in notes)
    assert all(path == "/v1/chat/completions" for path, _, _ in server.asked)


def test_images_that_were_never_asked_come_first(server, folder, prompts, silent):
    """The first three fail and the endpoint is left alone; the next run begins with the others."""
    server.say = lambda number, body: (401, None)
    judge_images(make_judge(f"openai:{server.url}", model="seer"), prompts, folder, silent)
    del server.asked[:]
    server.say = lambda number, body: (200, "yes") if number <= 4 else (401, None)
    judge = make_judge(f"openai:{server.url}", model="seer")
    answers, notes = judge_images(judge, prompts, folder, silent)
    told = [answers[one.name, n].success for one in prompts for n in range(2) if (one.name, n) in answers]
    assert told == [None, None, None, True, True] and "3 of 5" in notes[0]


def test_endpoints_are_checked(server):
    for url, fix in (
        ("ftp://x", "not a valid address"),
        ("http://[::1/v1", "not a valid address"),
        ("http://host:port/v1", "not a valid address"),
        ("http://me:key@host/v1", "key"),
        (server.url, "needs the name of a model"),
    ):
        with pytest.raises(BadInput, match=fix):
            make_judge(f"openai:{url}", model="seer" if "key" in fix else None)
