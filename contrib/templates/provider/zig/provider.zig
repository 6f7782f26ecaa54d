//! NAME: {"name"} -> {"initials"}, the first character of each word.
const std = @import("std");
const provider = @import("provider");
const json = provider.json;

comptime {
    provider.exportRun(run);
}

fn run(input: []const u8) provider.Error![]const u8 {
    const name = try json.needString(try json.parse(input), "name");
    // No more than the name; nothing is given back, one instance serves one call.
    const initials = try provider.allocator.alloc(u8, name.len);
    var length: usize = 0;
    var words = std.mem.tokenizeScalar(u8, name, ' ');
    while (words.next()) |word| {
        const size = std.unicode.utf8ByteSequenceLength(word[0]) catch unreachable; // the host hands over UTF-8 alone
        @memcpy(initials[length..][0..size], word[0..size]);
        length += size;
    }
    if (length == 0) return json.refuse("name", "a name has at least one word");
    return json.write(.{ .initials = initials[0..length] });
}
