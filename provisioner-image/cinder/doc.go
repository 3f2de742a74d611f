// Package cinder is OpenStack Block Storage v3 as a storage of the domain.
//
// It has two halves. Cinder (volumes.go, attachments.go, reservations.go, messages.go) is Cinder's
// API: a method is one request, and its error is in the terms of the domain. Backend (backend.go)
// takes the steps of the domain with it: it knows Cinder's statuses, waits for them, and exports
// volumes by one of two workflows (export.go): by attachments (attach.go), or by the older
// reservation and a host's attachment (host.go).
//
// With the packages below it, it is the only one that speaks OpenStack, and it knows neither claims
// nor Kubernetes.
//
// Releases of Cinder differ in their URLs (projecturl) and in what they need for an attachment
// (attachments.go). Both are found out by its answers, and not by its version.
//
// Start at Backend in backend.go; Connect in connect.go logs in.
package cinder
