//! JSON for providers, small in code and in fuel: a value is a slice of its own text, checked once as a whole, and an
//! answer is written straight from a struct. Builds no tree; only strings with escapes are copied.
const std = @import("std");
const abi = @import("abi.zig");
const grammar = @import("grammar.zig");
const number = @import("number.zig");

pub const max_depth = grammar.max_depth;

/// One checked JSON value: its text, without space around it.
pub const Value = struct {
    text: []const u8,

    pub fn isObject(v: Value) bool {
        return v.text[0] == '{';
    }
    pub fn isArray(v: Value) bool {
        return v.text[0] == '[';
    }
    pub fn isString(v: Value) bool {
        return v.text[0] == '"';
    }
    pub fn isNull(v: Value) bool {
        return v.text[0] == 'n';
    }

    /// Member of an object. Null when there is none, or when this is no object.
    pub fn get(v: Value, key: []const u8) abi.Error!?Value {
        var parts = v.members();
        while (parts.next()) |name| {
            const member = parts.next().?;
            if (std.mem.eql(u8, (try name.string()).?, key)) return member;
        }
        return null;
    }

    /// Elements of an array, one after the other. None when this is no array.
    pub fn items(v: Value) Parts {
        return .{ .text = if (v.isArray()) v.text else "[]" };
    }

    /// Keys and values of an object in turn. None when this is no object.
    pub fn members(v: Value) Parts {
        return .{ .text = if (v.isObject()) v.text else "{}" };
    }

    /// The characters of a string, or null when this is none.
    pub fn string(v: Value) abi.Error!?[]const u8 {
        if (!v.isString()) return null;
        const inside = v.text[1 .. v.text.len - 1];
        return if (std.mem.indexOfScalar(u8, inside, '\\') == null) inside else try grammar.unescape(inside);
    }

    /// A number of at least 0 as an integer; null for anything else, a fraction included.
    pub fn integer(v: Value) ?u64 {
        const scaled = v.scale(0) orelse return null;
        return if (scaled.is_exact) scaled.value else null;
    }

    /// A number of at least 0 times 10^places, rounded down; null for anything else or too large.
    pub fn decimal(v: Value, places: u8) ?u64 {
        const scaled = v.scale(places) orelse return null;
        return scaled.value;
    }

    fn scale(v: Value, places: u8) ?number.Scaled {
        const n = number.scan(v.text, 0) orelse return null;
        return n.scale(places);
    }
};

/// Walks the parts of a container: the elements of an array, or the keys and values of an object in turn.
pub const Parts = struct {
    text: []const u8,
    at: usize = 1,

    pub fn next(p: *Parts) ?Value {
        while (true) : (p.at += 1) switch (p.text[p.at]) {
            ' ', '\t', '\n', '\r', ',', ':' => {},
            ']', '}' => return null,
            else => break,
        };
        const begin = p.at;
        p.at = grammar.skip(p.text, begin);
        return .{ .text = p.text[begin..p.at] };
    }
};

/// The provider's input. Fails with invalid_input when it is not JSON.
pub fn parse(input: []const u8) abi.Error!Value {
    return try valueOf(input, max_depth) orelse
        abi.fail(.{ .kind = .invalid_input, .message = "input is not JSON" });
}

/// Null unless `text` is I-JSON (RFC 7493) of at most `depth` levels: no duplicate key, no lone surrogate, no integer
/// beyond 2^53 - 1, no number that a double can't hold. What passes here, the gateway can hash and sign.
pub fn valueOf(text: []const u8, depth: usize) abi.Error!?Value {
    const trimmed = std.mem.trim(u8, text, " \t\r\n");
    return if (try grammar.check(trimmed, depth)) .{ .text = trimmed } else null;
}

/// A member that must be a string; fails with invalid_input, and the field's name in `details`, otherwise.
pub fn needString(v: Value, key: []const u8) abi.Error![]const u8 {
    if (try v.get(key)) |member| {
        if (try member.string()) |text| return text;
    }
    return refuse(key, "a string is missing");
}

/// The error for a field that is missing or of another type.
pub fn refuse(field: []const u8, message: []const u8) abi.Error {
    return abi.fail(.{ .kind = .invalid_input, .message = message, .details = try write(.{ .field = field }) });
}

/// JSON text of strings, integers from 0, booleans, enums (their names), `Value`s, and of structs, slices and optionals
/// of these.
pub fn write(value: anytype) abi.Error![]const u8 {
    var measure: Writer = .{};
    measure.put(value);
    var writer: Writer = .{ .out = try abi.allocator.alloc(u8, measure.len) };
    writer.put(value);
    return writer.out.?;
}

/// Writes, or without `out` only counts.
const Writer = struct {
    out: ?[]u8 = null,
    len: usize = 0,

    fn raw(w: *Writer, text: []const u8) void {
        if (w.out) |out| @memcpy(out[w.len..][0..text.len], text);
        w.len += text.len;
    }

    fn put(w: *Writer, value: anytype) void {
        const T = @TypeOf(value);
        if (T == Value) return w.raw(value.text);
        switch (@typeInfo(T)) {
            .@"struct" => |info| {
                inline for (info.field_names, 0..) |name, i| {
                    w.raw((if (i == 0) "{\"" else ",\"") ++ name ++ "\":");
                    w.put(@field(value, name));
                }
                w.raw(if (info.field_names.len == 0) "{}" else "}");
            },
            .bool => w.raw(if (value) "true" else "false"),
            .int, .comptime_int => w.integer(value),
            .optional => if (value) |present| w.put(present) else w.raw("null"),
            .@"enum" => w.string(@tagName(value)),
            .pointer => |info| if (info.size == .slice and info.child != u8) w.list(value) else w.string(value),
            else => @compileError("no JSON for " ++ @typeName(T)),
        }
    }

    fn list(w: *Writer, values: anytype) void {
        w.raw("[");
        for (values, 0..) |value, i| {
            if (i > 0) w.raw(",");
            w.put(value);
        }
        w.raw("]");
    }

    fn integer(w: *Writer, value: u64) void {
        var digits: [20]u8 = undefined;
        var begin: usize = digits.len;
        var rest = value;
        while (true) {
            begin -= 1;
            digits[begin] = '0' + @as(u8, @intCast(rest % 10));
            rest /= 10;
            if (rest == 0) break;
        }
        w.raw(digits[begin..]);
    }

    fn string(w: *Writer, text: []const u8) void {
        w.raw("\"");
        var begin: usize = 0;
        for (text, 0..) |c, i| {
            if (c >= 0x20 and c != '"' and c != '\\') continue;
            w.raw(text[begin..i]);
            begin = i + 1;
            switch (c) {
                '"' => w.raw("\\\""),
                '\\' => w.raw("\\\\"),
                '\n' => w.raw("\\n"),
                '\r' => w.raw("\\r"),
                '\t' => w.raw("\\t"),
                else => w.raw(&.{ '\\', 'u', '0', '0', hex[c >> 4], hex[c & 15] }),
            }
        }
        w.raw(text[begin..]);
        w.raw("\"");
    }
};

const hex = "0123456789abcdef";
