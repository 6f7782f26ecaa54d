//! echo: answers its input. For tests and for measuring what a call costs at least.
const provider = @import("provider");

comptime {
    provider.exportRun(run);
}

fn run(input: []const u8) provider.Error![]const u8 {
    return input;
}
