// Package eventlimit bounds the events that are written. client-go starts a goroutine for each
// event, and all wait for one rate limiter. 2,500 claims that say why they wait once held up the
// renewal of the leader's lease until it was lost (TestManyWaitingClaimsDoNotEndTheLeader). And
// client-go counts an event as a repeat only if the objects that it names have not changed since: a
// claim changes between almost any two events. Start reading at Limit.
package eventlimit
