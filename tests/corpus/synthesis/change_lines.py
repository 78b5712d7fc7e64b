"""Changes of the line of a capture."""

from __future__ import annotations

from synthesis.changes import line_change
from synthesis.dice import Dice


@line_change
def truncated(line: bytes, dice: Dice) -> bytes:
    return line[: dice.randint(1, max(1, len(line) - 1))]


@line_change
def blanks(line: bytes, dice: Dice) -> bytes:
    return dice.choice(
        (b" " + line + b"\t", line.replace(b'":', b'" : ', 3), line.replace(b",", b" , ", 3), line + b" ")
    )


@line_change
def bom(line: bytes, dice: Dice) -> bytes:
    return b"\xef\xbb\xbf" * dice.choice((1, 1, 2)) + line


@line_change
def escaped(line: bytes, dice: Dice) -> bytes:
    return dice.choice(
        (
            line.replace(b"protocol", b"\\u0070rotocol", 1),
            line.replace(b"a", b"\\u0061", 2),
            line.replace(b"/", b"\\/", 3),
        )
    )


@line_change
def repeated_member(line: bytes, dice: Dice) -> bytes:
    again = dice.choice(
        (
            b'"protocol":"KAFKA",',
            b'"received":null,',
            b'"endpoint":null,"endpoint":null,',
            b'"headers":[],',
            b'"note":1,"note":1,',
        )
    )
    return line.replace(b"{", b"{" + again, 1)


@line_change
def trailing(line: bytes, dice: Dice) -> bytes:
    return line + dice.choice((b"}", b"x", b" {}", b"\x00", b","))


@line_change
def broken_bytes(line: bytes, dice: Dice) -> bytes:
    place = dice.randrange(len(line))
    return line[:place] + dice.choice((b"\xff", b"\x00", b"\\", b'"', b"\xc3")) + line[place + 1 :]


@line_change
def lone_surrogate(line: bytes, dice: Dice) -> bytes:
    place = line.rfind(b'":"')
    return line[: place + 3] + b"\\ud800" + line[place + 3 :]


@line_change
def other_value(line: bytes, dice: Dice) -> bytes:
    return dice.choice((b"[]", b"{}", b"5", b"null", b'"x"', b"[" + line + b"]", b"[]]", b'{"protocol":{}}'))
