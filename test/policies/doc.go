// Package policies holds the rules of deploy/base/dispatcher-pv-policy.yaml and
// dispatcher-claim-policy.yaml in Go, so that every scenario of the tests checks what the
// dispatcher writes by them: a rare write that the policies refuse would be tried for ever, and no
// end-to-end test meets all of them. Only tests use it. Start at Refusal.
package policies
