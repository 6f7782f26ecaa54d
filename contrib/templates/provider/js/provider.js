// NAME: {"name"} -> {"initials"}, the first character of each word.

// `input` is the request, as the manifest's request_schema has it; the result holds to response_schema.
// What is thrown is a provider-error of wit/deps/gateway-provider/provider.wit.
export function run(input) {
  const words = JSON.parse(input).name.split(' ');
  const initials = words.map((word) => [...word][0] ?? '').join('');
  if (initials === '') {
    throw {
      kind: 'invalid-input',
      message: 'a name has at least one word',
      details: JSON.stringify({ field: 'name' }),
      retryable: false,
    };
  }
  return JSON.stringify({ initials });
}
