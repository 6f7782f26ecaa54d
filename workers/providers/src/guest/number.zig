//! JSON numbers without floating point: grammar, range, and scaling to integers.
const std = @import("std");

pub const Scaled = struct { value: u64, is_exact: bool };

/// A number as read: `mantissa` (its first 19 significant digits) times 10^`exponent`.
pub const Number = struct {
    end: usize,
    is_negative: bool,
    /// Written without fraction and exponent.
    is_integer: bool,
    mantissa: u64,
    exponent: i64,
    /// Digits other than zero were left out of the mantissa.
    is_cut: bool,

    /// The number times 10^places, rounded down; null when negative or beyond u64.
    pub fn scale(n: Number, places: u8) ?Scaled {
        if (n.mantissa == 0) return .{ .value = 0, .is_exact = true };
        if (n.is_negative) return null;
        var value = n.mantissa;
        var shift = n.exponent + places;
        if (shift > 19) return null;
        while (shift > 0) : (shift -= 1) value = std.math.mul(u64, value, 10) catch return null;
        var is_exact = !n.is_cut;
        while (shift < 0 and value != 0) : (shift += 1) {
            is_exact = is_exact and value % 10 == 0;
            value /= 10;
        }
        return .{ .value = value, .is_exact = is_exact };
    }

    /// Integers within ±(2^53 - 1), everything else within the finite doubles.
    pub fn isInterchangeable(n: Number) bool {
        if (n.is_integer) return n.exponent == 0 and n.mantissa < 1 << 53;
        if (n.mantissa == 0) return true;
        var mantissa = n.mantissa;
        var exponent = n.exponent;
        while (mantissa < 1_000_000_000_000_000_000) : (exponent -= 1) mantissa *= 10;
        // 19 digits now: the largest double is 1.7976931348623157 * 10^308.
        return exponent < 290 or (exponent == 290 and mantissa <= 1_797_693_134_862_315_807);
    }
};

/// The number that begins at `begin`, or null when none does.
pub fn scan(text: []const u8, begin: usize) ?Number {
    var n: Number = .{ .end = begin, .is_negative = false, .is_integer = true, .mantissa = 0, .exponent = 0, .is_cut = false };
    if (at(text, n.end) == '-') {
        n.is_negative = true;
        n.end += 1;
    }
    const first = n.end;
    if (!digits(text, &n, 0)) return null;
    if (text[first] == '0' and n.end > first + 1) return null;
    if (at(text, n.end) == '.') {
        n.is_integer = false;
        n.end += 1;
        if (!digits(text, &n, -1)) return null;
    }
    if (at(text, n.end) | 0x20 == 'e') {
        n.is_integer = false;
        n.end += 1;
        const sign = at(text, n.end);
        if (sign == '+' or sign == '-') n.end += 1;
        const power = n.end;
        var exponent: i64 = 0;
        while (std.ascii.isDigit(at(text, n.end))) : (n.end += 1) {
            if (exponent < 1_000_000_000) exponent = exponent * 10 + (text[n.end] - '0');
        }
        if (n.end == power) return null;
        n.exponent += if (sign == '-') -exponent else exponent;
    }
    return n;
}

/// Takes in at least one digit; each counts `step` towards the exponent.
fn digits(text: []const u8, n: *Number, step: i64) bool {
    const first = n.end;
    while (std.ascii.isDigit(at(text, n.end))) : (n.end += 1) {
        const digit = text[n.end] - '0';
        if (n.mantissa < 1_000_000_000_000_000_000) {
            n.mantissa = n.mantissa * 10 + digit;
            n.exponent += step;
        } else {
            n.is_cut = n.is_cut or digit != 0;
            n.exponent += step + 1;
        }
    }
    return n.end > first;
}

fn at(text: []const u8, i: usize) u8 {
    return if (i < text.len) text[i] else 0;
}
