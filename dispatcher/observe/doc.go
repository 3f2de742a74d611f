// Package observe gathers all that is known of one claim's UID into an Observation: the objects, and the View of them that decide
// judges. It reads through a cluster.Reader, writes nothing and decides nothing. Start reading at Observer.Observe.
package observe
