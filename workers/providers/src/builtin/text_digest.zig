//! text_digest: `{"text"}` -> `{"sha256", "bytes", "characters", "words", "lines"}`. Imports nothing.
//!
//! Bytes are those of the text in UTF-8, characters are code points, words stand between Unicode white space, lines
//! are counted as editors do: a last one without a line feed counts, an empty text has none.
const std = @import("std");
const provider = @import("provider");

comptime {
    provider.exportRun(run);
}

fn run(input: []const u8) provider.Error![]const u8 {
    const text = try provider.json.needString(try provider.json.parse(input), "text");
    var digest: [32]u8 = undefined;
    std.crypto.hash.sha2.Sha256.hash(text, &digest, .{});
    const counts = count(text);
    return provider.json.write(.{
        .sha256 = @as([]const u8, &std.fmt.bytesToHex(digest, .lower)),
        .bytes = text.len,
        .characters = counts.characters,
        .words = counts.words,
        .lines = counts.lines,
    });
}

const Counts = struct { characters: usize = 0, words: usize = 0, lines: usize = 0 };

fn count(text: []const u8) Counts {
    var c: Counts = .{};
    var in_word = false;
    var i: usize = 0;
    while (i < text.len) {
        const size = sizeOfCharacter(text[i]);
        const is_space = isSpace(text[i..][0..size]);
        if (!is_space and !in_word) c.words += 1;
        in_word = !is_space;
        if (text[i] == '\n') c.lines += 1;
        c.characters += 1;
        i += size;
    }
    if (text.len > 0 and text[text.len - 1] != '\n') c.lines += 1;
    return c;
}

/// Bytes of the UTF-8 sequence that begins with `first`; the host hands over nothing but valid ones.
fn sizeOfCharacter(first: u8) usize {
    if (first < 0x80) return 1;
    if (first < 0xe0) return 2;
    return if (first < 0xf0) 3 else 4;
}

/// Unicode's White_Space property.
fn isSpace(character: []const u8) bool {
    return switch (character.len) {
        1 => character[0] == ' ' or (character[0] >= 9 and character[0] <= 13),
        2 => character[0] == 0xc2 and (character[1] == 0x85 or character[1] == 0xa0),
        3 => switch (std.unicode.utf8Decode3(character[0..3].*) catch unreachable) {
            0x1680, 0x2000...0x200a, 0x2028, 0x2029, 0x202f, 0x205f, 0x3000 => true,
            else => false,
        },
        else => false,
    };
}
