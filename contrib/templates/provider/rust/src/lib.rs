//! NAME: {"name"} -> {"initials"}, the first character of each word.
//!
//! Without `std`, which would import WASI: the gateway grants none. Everything of `alloc` is there.
#![no_std]
extern crate alloc;

mod memory;

use alloc::string::{String, ToString};
use gateway::provider::types::ErrorKind;
use serde::{Deserialize, Serialize};

wit_bindgen::generate!({ path: "wit/provider.wit", world: "provider" });

#[derive(Deserialize)]
struct Request {
    name: String,
}

#[derive(Serialize)]
struct Answer {
    initials: String,
}

struct Provider;

impl Guest for Provider {
    /// `input` is the request, as the manifest's request_schema has it; the result holds to response_schema.
    fn run(input: String) -> Result<String, ProviderError> {
        let request: Request = serde_json::from_str(&input).map_err(|error| refused(&error.to_string()))?;
        let initials: String = request.name.split(' ').filter_map(|word| word.chars().next()).collect();
        if initials.is_empty() {
            return Err(refused("a name has at least one word"));
        }
        serde_json::to_string(&Answer { initials }).map_err(|error| refused(&error.to_string()))
    }
}

fn refused(message: &str) -> ProviderError {
    ProviderError {
        kind: ErrorKind::InvalidInput,
        message: message.to_string(),
        details: Some(r#"{"field": "name"}"#.to_string()),
        retryable: false,
    }
}

export!(Provider);
