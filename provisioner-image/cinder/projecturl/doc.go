// Package projecturl puts the project into the URLs of a Cinder that wants it there.
package projecturl
