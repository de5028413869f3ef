// Package httprules connects the HTTP rules of docs/http-rules.toml to the tests that prove them: each rule has either
// a subtest that carries its number, t.Run("R37 ..."), or a reason why no test proves it. docs/HTTP.md is rendered from
// both.
//
// Only tests and command mutate import it.
package httprules
