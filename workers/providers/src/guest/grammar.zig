//! The grammar of JSON (RFC 8259) with the stricter rules of I-JSON (RFC 7493), without recursion: a text from outside
//! can't exhaust the stack. The host hands over valid UTF-8, so bytes from 0x80 on are not looked at.
const std = @import("std");
const abi = @import("abi.zig");
const number = @import("number.zig");

pub const max_depth = 64;

/// Whether `text` is one value and nothing else, of at most `depth` (up to `max_depth`) levels.
pub fn check(text: []const u8, depth: usize) abi.Error!bool {
    var c: Checker = .{ .text = text, .limit = depth };
    while (true) {
        if (!try c.begin()) return false;
        while (true) {
            c.space();
            if (c.height == 0) return c.at == text.len;
            const is_object = c.isObject();
            switch (c.take()) {
                ',' => {
                    if (is_object and !try c.key()) return false;
                    break;
                },
                '}' => if (!is_object) return false,
                ']' => if (is_object) return false,
                else => return false,
            }
            c.height -= 1;
        }
    }
}

const Checker = struct {
    text: []const u8,
    limit: usize,
    at: usize = 0,
    height: usize = 0,
    /// Bit n: the container at height n + 1 is an object.
    objects: u64 = 0,
    /// Per height, the number of the object there.
    names: [max_depth]u32 = undefined,
    seen_objects: u32 = 0,
    keys: KeySet = .{},

    fn take(c: *Checker) u8 {
        if (c.at >= c.text.len) return 0;
        defer c.at += 1;
        return c.text[c.at];
    }

    fn space(c: *Checker) void {
        while (c.at < c.text.len) : (c.at += 1) switch (c.text[c.at]) {
            ' ', '\t', '\n', '\r' => {},
            else => return,
        };
    }

    fn isObject(c: *Checker) bool {
        return c.objects >> @intCast(c.height - 1) & 1 == 1;
    }

    /// A scalar or an empty container whole, or a container up to its first value.
    fn begin(c: *Checker) abi.Error!bool {
        while (true) {
            c.space();
            const first = c.at;
            switch (c.take()) {
                '{' => {
                    if (!c.push(true)) return false;
                    c.space();
                    if (c.at < c.text.len and c.text[c.at] == '}') return true;
                    if (!try c.key()) return false;
                },
                '[' => {
                    if (!c.push(false)) return false;
                    c.space();
                    if (c.at < c.text.len and c.text[c.at] == ']') return true;
                },
                '"' => return c.to(stringEnd(c.text, c.at)),
                't' => return c.word("rue"),
                'f' => return c.word("alse"),
                'n' => return c.word("ull"),
                else => {
                    const n = number.scan(c.text, first) orelse return false;
                    return n.isInterchangeable() and c.to(n.end);
                },
            }
        }
    }

    fn push(c: *Checker, is_object: bool) bool {
        if (c.height == c.limit) return false;
        const bit = @as(u64, 1) << @intCast(c.height);
        c.objects = if (is_object) c.objects | bit else c.objects & ~bit;
        c.names[c.height] = c.seen_objects;
        c.seen_objects += 1;
        c.height += 1;
        return true;
    }

    fn to(c: *Checker, end: ?usize) bool {
        c.at = end orelse return false;
        return true;
    }

    fn word(c: *Checker, rest: []const u8) bool {
        if (!std.mem.startsWith(u8, c.text[c.at..], rest)) return false;
        c.at += rest.len;
        return true;
    }

    /// A key that this object does not have yet, and the colon after it.
    fn key(c: *Checker) abi.Error!bool {
        c.space();
        if (c.take() != '"') return false;
        const first = c.at;
        if (!c.to(stringEnd(c.text, first))) return false;
        const raw = c.text[first .. c.at - 1];
        const name = if (std.mem.indexOfScalar(u8, raw, '\\') == null) raw else try unescape(raw);
        if (!try c.keys.add(std.hash.Wyhash.hash(c.names[c.height - 1], name))) return false;
        c.space();
        return c.take() == ':';
    }
};

/// Hashes of (object, key). Equal keys always collide, others once in 2^64: then a good text counts as a bad one.
const KeySet = struct {
    slots: []u64 = &.{},
    used: usize = 0,

    fn add(s: *KeySet, hash: u64) abi.Error!bool {
        if (s.used * 2 >= s.slots.len) try s.grow();
        if (!place(s.slots, hash | 1)) return false;
        s.used += 1;
        return true;
    }

    fn grow(s: *KeySet) abi.Error!void {
        const wider = try abi.allocator.alloc(u64, @max(16, s.slots.len * 4));
        @memset(wider, 0);
        for (s.slots) |hash| {
            if (hash != 0) _ = place(wider, hash);
        }
        s.slots = wider;
    }

    fn place(slots: []u64, hash: u64) bool {
        var i: usize = @as(usize, @truncate(hash >> 32)) & (slots.len - 1);
        while (slots[i] != 0) : (i = (i + 1) & (slots.len - 1)) {
            if (slots[i] == hash) return false;
        }
        slots[i] = hash;
        return true;
    }
};

/// End of the string (after its closing quote) whose characters begin at `first`, or null when it is none.
fn stringEnd(text: []const u8, first: usize) ?usize {
    var i = first;
    while (i < text.len) switch (text[i]) {
        '"' => return i + 1,
        '\\' => i = escapeEnd(text, i) orelse return null,
        0...0x1f => return null,
        else => i += 1,
    };
    return null;
}

fn escapeEnd(text: []const u8, i: usize) ?usize {
    if (i + 1 >= text.len) return null;
    switch (text[i + 1]) {
        '"', '\\', '/', 'b', 'f', 'n', 'r', 't' => return i + 2,
        'u' => {},
        else => return null,
    }
    const unit = codeUnit(text, i) orelse return null;
    if (unit & 0xf800 != 0xd800) return i + 6;
    if (unit >= 0xdc00) return null;
    const low = codeUnit(text, i + 6) orelse return null;
    return if (low & 0xfc00 == 0xdc00) i + 12 else null;
}

/// The UTF-16 code unit of `\uXXXX` at `i`.
fn codeUnit(text: []const u8, i: usize) ?u16 {
    if (i + 6 > text.len or text[i] != '\\' or text[i + 1] != 'u') return null;
    var unit: u16 = 0;
    for (text[i + 2 ..][0..4]) |c| unit = unit << 4 | (std.fmt.charToDigit(c, 16) catch return null);
    return unit;
}

/// The characters of a checked string: `inside` is what stands between its quotes.
pub fn unescape(inside: []const u8) abi.Error![]const u8 {
    const out = try abi.allocator.alloc(u8, inside.len);
    var n: usize = 0;
    var i: usize = 0;
    while (i < inside.len) {
        if (inside[i] != '\\') {
            const run = std.mem.indexOfScalarPos(u8, inside, i, '\\') orelse inside.len;
            @memcpy(out[n..][0 .. run - i], inside[i..run]);
            n += run - i;
            i = run;
            continue;
        }
        const end = escapeEnd(inside, i).?;
        n += put(out[n..], inside[i..end]);
        i = end;
    }
    return out[0..n];
}

/// Writes what one escape stands for, as UTF-8.
fn put(out: []u8, escape: []const u8) usize {
    out[0] = switch (escape[1]) {
        'b' => 8,
        'f' => 12,
        'n' => '\n',
        'r' => '\r',
        't' => '\t',
        'u' => {
            var point: u21 = codeUnit(escape, 0).?;
            if (escape.len == 12) point = 0x10000 + ((point & 0x3ff) << 10 | (codeUnit(escape, 6).? & 0x3ff));
            return std.unicode.utf8Encode(point, out) catch unreachable;
        },
        else => |c| c,
    };
    return 1;
}

/// End of the checked value that begins at `begin`.
pub fn skip(text: []const u8, begin: usize) usize {
    var i = begin;
    var height: usize = 0;
    while (i < text.len) {
        switch (text[i]) {
            '{', '[' => height += 1,
            '}', ']' => height -= 1,
            '"' => {
                i += 1;
                while (text[i] != '"') i += if (text[i] == '\\') 2 else 1;
            },
            ',', ':', ' ', '\t', '\n', '\r' => {
                i += 1;
                continue;
            },
            else => {
                while (i + 1 < text.len and !isMark(text[i + 1])) i += 1;
            },
        }
        i += 1;
        if (height == 0) return i;
    }
    return i;
}

/// What ends a number or a word.
fn isMark(c: u8) bool {
    return switch (c) {
        ',', ':', ']', '}', ' ', '\t', '\n', '\r' => true,
        else => false,
    };
}
