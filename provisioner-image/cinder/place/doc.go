// Package place finds out which Cinder answers a login, and for which project, by keystone's
// answer.
package place
