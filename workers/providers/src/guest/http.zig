//! The host's `http`: one request, one response. Where it may go is the manifest's business, not the guest's.
const abi = @import("abi.zig");

pub const Header = extern struct {
    name: abi.Str,
    value: abi.Str,

    pub fn of(name: []const u8, value: []const u8) Header {
        return .{ .name = .of(name), .value = .of(value) };
    }
};

pub const Request = struct {
    method: []const u8 = "GET",
    url: []const u8,
    headers: []const Header = &.{},
    body: []const u8 = "",
    body_encoding: abi.Encoding = .utf8,
    /// Null: as long as the call lasts.
    timeout_ms: ?u32 = null,
};

pub const Response = struct {
    status: u16,
    headers: []const Header,
    body: []const u8,
    body_encoding: abi.Encoding,

    /// Value of the first header of this name, any case.
    pub fn header(r: Response, name: []const u8) ?[]const u8 {
        for (r.headers) |h| {
            if (@import("std").ascii.eqlIgnoreCase(h.name.get(), name)) return h.value.get();
        }
        return null;
    }
};

const Headers = extern struct { ptr: [*]const Header, len: usize };
const RawResponse = extern struct { status: u16, headers: Headers, body: abi.Str, body_encoding: abi.Encoding };

// A record of at most 16 flat values is spread over the parameters; the last one is the place of the result.
extern "gateway:provider/http@1.0.0" fn send(
    method: [*]const u8,
    method_len: usize,
    url: [*]const u8,
    url_len: usize,
    headers: [*]const Header,
    headers_len: usize,
    body: [*]const u8,
    body_len: usize,
    body_encoding: i32,
    has_timeout: i32,
    timeout_ms: u32,
    result: *abi.Result(RawResponse),
) void;

/// Fails with what the host says when nothing came back (denied, unavailable, timeout, too_large).
pub fn request(q: Request) abi.Error!Response {
    var r: abi.Result(RawResponse) = undefined;
    send(
        abi.place(q.method),
        q.method.len,
        abi.place(q.url),
        q.url.len,
        abi.place(q.headers),
        q.headers.len,
        abi.place(q.body),
        q.body.len,
        @backingInt(q.body_encoding),
        @intFromBool(q.timeout_ms != null),
        q.timeout_ms orelse 0,
        &r,
    );
    if (r.is_err != 0) return abi.failRaw(r.u.err);
    const ok = r.u.ok;
    return .{
        .status = ok.status,
        .headers = ok.headers.ptr[0..ok.headers.len],
        .body = ok.body.get(),
        .body_encoding = ok.body_encoding,
    };
}
