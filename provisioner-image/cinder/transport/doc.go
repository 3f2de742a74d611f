// Package transport sends requests to Cinder and keystone over connections that are kept, and only so many at a time. It
// knows neither.
package transport
