// Package observe collects everything that is known of one claim's UID into an Observation: the
// objects, and the View of them from which decide decides. It reads through a cluster.Reader,
// writes nothing and decides nothing. Start reading at Observer.Observe.
package observe
