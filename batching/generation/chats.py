"""Chats as a model writes them: by its tokenizer's chat template, or in ChatML without one."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from query_mutator.base.errors import UserError

LEARNED_ROLE = "assistant"
TURN_BEGINS, TURN_ENDS = "<|im_start|>", "<|im_end|>"
"""The marks of ChatML: tokens where the tokenizer has them, and else plain text."""
HOLDS, ENDS_HOLDING = "\ufdd0", "\ufdd1"
"""Around the number of a turn in a template's text; no character, so that no template knows it."""
DATE = "26 Jul 2024"
"""What templates that write a date are told, so that the same data are the same tokens each day;
those of Llama name it where nobody says one."""


@dataclass(frozen=True)
class Turn:
    """What one side says in a chat."""

    role: str
    content: str


@dataclass(frozen=True)
class Part:
    """A piece of a text: whether it is learned, or only read, and whether it is one mark."""

    text: str
    learned: bool = True
    is_mark: bool = False


@dataclass(frozen=True)
class ChatTemplate:
    """How a tokenizer's own model writes a chat.

    >>> template = ChatTemplate("{% for m in messages %}[{{ m.role }}] {{ m.content }}<e>"
    ...                         "{% endfor %}", marks=("<e>",))
    >>> parts, ends = template.parts([Turn("user", "Hi"), Turn("assistant", "Yes <e>")])
    >>> [part.text for part in parts if part.learned], [part.is_mark for part in parts]
    (['Yes <e>', '<e>'], [False, True, False, False, True])
    """

    source: str
    """Jinja, as `tokenizer_config.json` has it."""
    marks: tuple[str, ...] = ()
    """The special tokens that the template may set, and a turn's text may not."""
    bos_token: str = ""
    eos_token: str = ""

    def parts(self, turns: Sequence[Turn]) -> tuple[tuple[Part, ...], bool]:
        """The chat in pieces, and whether its end has to be added.

        Of what the assistant says all is learned, and the mark that ends it. `UserError` where the
        template refuses the chat, or changes what is said in it.
        """
        frame = self._render(
            Turn(turn.role, f"{HOLDS}{number}{ENDS_HOLDING}") for number, turn in enumerate(turns)
        )
        pieces = re.split(f"{HOLDS}(\\d+){ENDS_HOLDING}", frame)
        contents = _as_written(pieces, turns, self._render(turns))
        parts: list[Part] = []
        begin, ends = 0, False
        for index, content in enumerate(contents):
            number, after = pieces[2 * index + 1], pieces[2 * index + 2]
            parts += self._marked(pieces[2 * index][begin:])
            ends = turns[int(number)].role == LEARNED_ROLE
            parts.append(Part(content, learned=ends))
            begin = 0
            if ends and (end := self._an_end.match(after)):
                space, mark = end.groups()
                parts += [Part(space), Part(mark, is_mark=True)]
                begin, ends = end.end(), False
        parts += self._marked(pieces[-1][begin:])
        return tuple(merged(parts)), ends

    def _render(self, turns: Iterable[Turn]) -> str:
        from jinja2 import TemplateError
        from transformers.utils.chat_template_utils import render_jinja_template

        messages = [{"role": turn.role, "content": turn.content} for turn in turns]
        try:
            rendered: Any = render_jinja_template(
                conversations=[messages],
                chat_template=self.source,
                bos_token=self.bos_token,
                eos_token=self.eos_token,
                date_string=DATE,
            )
        except (TemplateError, ArithmeticError, LookupError, TypeError, ValueError) as error:
            raise UserError(f"the tokenizer's chat template refuses it: {error}") from error
        texts, _ = rendered  # it says that it gives a text, and gives a list of them
        return str(texts[0])

    def _marked(self, text: str) -> Iterator[Part]:
        """What the template itself writes, its special tokens apart."""
        for number, piece in enumerate(self._a_mark.split(text)):
            yield Part(piece, learned=False, is_mark=number % 2 == 1)

    @cached_property
    def _a_mark(self) -> re.Pattern[str]:
        longest_first = sorted(filter(None, self.marks), key=len, reverse=True)
        return re.compile(f"({'|'.join(map(re.escape, longest_first)) or '(?!)'})")

    @cached_property
    def _an_end(self) -> re.Pattern[str]:
        return re.compile(rf"(\s*){self._a_mark.pattern}")


def chat_ml(turns: Sequence[Turn]) -> tuple[Part, ...]:
    """A chat for a tokenizer that has no template."""
    parts: list[Part] = []
    for turn in turns:
        learned = turn.role == LEARNED_ROLE
        parts += [
            Part(TURN_BEGINS, learned=False, is_mark=True),
            Part(f"{turn.role}\n", learned=False),
            Part(turn.content, learned=learned),
            Part(TURN_ENDS, learned=learned, is_mark=True),
            Part("\n", learned=False),
        ]
    return tuple(merged(parts))


def merged(parts: Iterable[Part]) -> Iterator[Part]:
    """The same text in as few pieces as can be: what stands together is tokenised together."""
    before: Part | None = None
    for part in parts:
        if not part.text:
            continue
        if before is None:
            before = part
        elif before.is_mark or part.is_mark or before.learned != part.learned:
            yield before
            before = part
        else:
            before = Part(before.text + part.text, before.learned)
    if before is not None:
        yield before


def _as_written(pieces: Sequence[str], turns: Sequence[Turn], whole: str) -> list[str]:
    """What each turn says within the whole chat: a template may cut off the spaces around it."""
    if not whole.startswith(pieces[0]):
        raise UserError("the tokenizer's chat template changes with what is said in the chat")
    at, found = len(pieces[0]), []
    for number, after in zip(pieces[1::2], pieces[2::2], strict=True):
        content = turns[int(number)].content
        for said in (content, content.strip(), content.lstrip(), content.rstrip()):
            if whole.startswith(said + after, at):
                found.append(said)
                at += len(said) + len(after)
                break
        else:
            raise UserError("the tokenizer's chat template changes what is said in the chat")
    if at != len(whole):
        raise UserError("the tokenizer's chat template changes with what is said in the chat")
    return found
