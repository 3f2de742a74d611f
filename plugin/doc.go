// Package plugin has the commands of kubectl flex. What it says of a claim is what the dispatcher
// does with it: it fills the dispatcher's caches, and asks observe and decide. A command with rules
// of its own would be wrong as soon as the dispatcher's change. It writes nothing to the API
// itself: admin, audit/run and conform do. Start reading at Dispatcher.Explain.
package plugin
