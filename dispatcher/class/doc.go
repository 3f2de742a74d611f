// Package class is the loop of a class: it alone creates Jobs, for the claims that wait in the
// class, as package slots chooses them. It offers a slot to each of them, which decide.Decide
// answers: what was known when the claim began to wait may be old. Start reading at Loop.Reconcile.
package class
