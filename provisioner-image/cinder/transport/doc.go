// Package transport sends requests to Cinder and keystone over connections that are kept. It knows
// neither.
package transport
