// Package httprules holds the code to the HTTP rules that it obeys: each rule of docs/http-rules.toml has a test whose
// subtest carries its number, t.Run("R37 ..."), or a reason why it does not apply yet; docs/HTTP.md is made from both.
//
// It also knows how to break the code: tools/mutations.toml records the line that guards a rule, and what breaks it. A
// test of the rule must then fail; command mutate tries that.
//
// Only tests and tools import it.
package httprules
