// Package httprules connects the HTTP rules of docs/http-rules.toml to the tests that prove them: each rule has a test whose
// subtest carries its number, t.Run("R37 ..."), or a reason why none does. docs/HTTP.md is rendered from both.
//
// Only tests and command mutate import it.
package httprules
