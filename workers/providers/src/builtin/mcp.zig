//! mcp: calls the tool of an MCP server that the gateway has planned. The host carries the message. Imports http.
//!
//! `{"request", "call": {"method", "url", "headers", "body"}}` -> `{"content": [...]}`, and `"structured"` where the tool
//! answers with structured content. A tool that reports a failure, a server that refuses the call and a tool that asks
//! for more input are failures.
const std = @import("std");
const provider = @import("provider");
const json = provider.json;

comptime {
    provider.exportRun(run);
}

/// Two levels more than the content may have, of which the answer has one again.
const message_depth = 33;
/// Bytes of a tool's own text about its failure.
const max_told = 1024;

fn run(input: []const u8) provider.Error![]const u8 {
    const call = try (try json.parse(input)).get("call") orelse return json.refuse("call", "the call is missing");
    const response = try provider.http.request(.{
        .method = try json.needString(call, "method"),
        .url = try json.needString(call, "url"),
        .body = try json.needString(call, "body"),
    });
    const message = try json.valueOf(response.body, message_depth) orelse
        return failed("the tool's answer is no JSON that can be signed", null);
    if (try message.get("error")) |refusal| {
        const code = try refusal.get("code");
        return failed(try told("the MCP server refused the call", try refusal.get("message")), code);
    }
    const result = try message.get("result") orelse return failed("the MCP server answered without a result", null);
    if (try result.get("resultType")) |kind| {
        const name = try kind.string() orelse "";
        if (!std.mem.eql(u8, name, "complete")) return failed("the tool asks for more input, which this action can't give", null);
    }
    const content = try result.get("content") orelse return failed("the tool answered without content", null);
    if (!content.isArray()) return failed("the tool's content is no list", null);
    // Anything but false is a failure: an answer that can't be read is no success.
    if (try result.get("isError")) |flag| {
        if (!std.mem.eql(u8, flag.text, "false")) return failed(try told("the tool failed", try textOf(content)), null);
    }
    if (try result.get("structuredContent")) |structured| {
        if (!structured.isNull()) return json.write(.{ .content = content, .structured = structured });
    }
    return json.write(.{ .content = content });
}

fn failed(message: []const u8, code: ?json.Value) provider.Error {
    return provider.fail(.{
        .kind = .unavailable,
        .message = message,
        .details = if (code) |number| try json.write(.{ .code = number }) else null,
    });
}

/// The first text of a tool's content.
fn textOf(content: json.Value) provider.Error!?json.Value {
    var items = content.items();
    while (items.next()) |item| {
        if (try item.get("text")) |text| return text;
    }
    return null;
}

fn told(what: []const u8, text: ?json.Value) provider.Error![]const u8 {
    const value = text orelse return what;
    const words = try value.string() orelse return what;
    var end = @min(words.len, max_told);
    while (end < words.len and end > 0 and words[end] & 0xc0 == 0x80) end -= 1;
    return try std.mem.concat(provider.allocator, u8, &.{ what, ": ", words[0..end] });
}
