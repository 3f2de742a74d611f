// Package body has the bodies of requests to Cinder that gophercloud's own types cannot build.
package body
