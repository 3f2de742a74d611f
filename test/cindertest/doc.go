// Package cindertest is a Cinder, and a keystone before it, in the test's own process. What it
// answers follows the requests and answers that were captured from a real Cinder (Zed, API 3.70)
// with auth_strategy = noauth and tgt, and in what differs those that were measured of 17, 26, 28
// and 29: captures_test.go and measured_test.go of package cinder compare them.
//
// It may not import what it tests. No code but tests may import it.
//
// Tests that meet a real Cinder as well read its account with ReadOpenrc.
//
// Start at Server in server.go, and at its fields, by which a test disturbs it.
package cindertest
