// Package eventlimit bounds the events that wait to be written. client-go starts a goroutine for
// each event, and all wait for one rate limiter: 2,500 claims that say why they wait once held up
// the renewal of the leader's lease until it was lost. Start reading at Limit.
package eventlimit
