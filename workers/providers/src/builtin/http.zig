//! http: sends the call that the gateway has made from the action's template, as it stands. Imports http.
//!
//! `{"request", "call": {"method", "url", "headers": [[name, value]], "body": text or null}}` -> `{"status", "body"}`.
//! An answer below 500 is a result, whatever its status: the verifier judges it. From 500 on it is a failure. The body
//! is carried as JSON where it is JSON that can be signed (I-JSON, not deeper than 31 levels) and not declared to be
//! something else; otherwise as text, or as base64 with `"body_encoding": "base64"` where it is no text.
const std = @import("std");
const provider = @import("provider");
const json = provider.json;

comptime {
    provider.exportRun(run);
}

/// One level less than a request may have, because the answer wraps the body once.
const body_depth = 31;

fn run(input: []const u8) provider.Error![]const u8 {
    const call = try (try json.parse(input)).get("call") orelse return json.refuse("call", "the call is missing");
    const method = try json.needString(call, "method");
    const response = try provider.http.request(.{
        .method = method,
        .url = try json.needString(call, "url"),
        .headers = try headersOf(call),
        .body = try bodyOf(call),
    });
    if (response.status >= 500) return provider.fail(.{
        .kind = .unavailable,
        .message = try std.mem.concat(provider.allocator, u8, &.{ "the upstream answered ", try json.write(response.status) }),
        .details = try json.write(.{ .status = response.status }),
        .retryable = isIdempotent(method),
    });
    if (response.body_encoding == .base64) {
        return json.write(.{ .status = response.status, .body = response.body, .body_encoding = response.body_encoding });
    }
    if (saysJson(response.header("content-type"))) {
        if (try json.valueOf(response.body, body_depth)) |body| {
            return json.write(.{ .status = response.status, .body = body });
        }
    }
    return json.write(.{ .status = response.status, .body = response.body });
}

fn headersOf(call: json.Value) provider.Error![]const provider.http.Header {
    const list = try call.get("headers") orelse return &.{};
    if (!list.isArray()) return json.refuse("headers", "headers are not a list");
    var count: usize = 0;
    var counting = list.items();
    while (counting.next()) |_| count += 1;
    const headers = try provider.allocator.alloc(provider.http.Header, count);
    var items = list.items();
    for (headers) |*header| {
        var pair = items.next().?.items();
        header.* = .of(try textOf(pair.next()), try textOf(pair.next()));
        if (pair.next() != null) return json.refuse("headers", "a header is not a pair");
    }
    return headers;
}

fn textOf(value: ?json.Value) provider.Error![]const u8 {
    if (value) |v| {
        if (try v.string()) |text| return text;
    }
    return json.refuse("headers", "a header is not a pair of strings");
}

fn bodyOf(call: json.Value) provider.Error![]const u8 {
    const body = try call.get("body") orelse return "";
    if (body.isNull()) return "";
    return try body.string() orelse json.refuse("body", "the body is not a text");
}

/// Whether sending it twice does no more than sending it once (RFC 9110 §9.2.2).
fn isIdempotent(method: []const u8) bool {
    for ([_][]const u8{ "GET", "HEAD", "OPTIONS", "PUT", "DELETE" }) |name| {
        if (std.mem.eql(u8, method, name)) return true;
    }
    return false;
}

/// No content type at all counts as JSON: the grammar decides.
fn saysJson(content_type: ?[]const u8) bool {
    const value = content_type orelse return true;
    const end = std.mem.indexOfScalar(u8, value, ';') orelse value.len;
    const media = std.mem.trim(u8, value[0..end], " \t");
    return std.ascii.eqlIgnoreCase(media, "application/json") or std.ascii.endsWithIgnoreCase(media, "+json");
}
