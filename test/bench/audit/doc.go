// Package audit counts requests by the API server's audit log: who asked for what, and which
// answers were conflicts. It is pure. Start at [Read].
package audit
