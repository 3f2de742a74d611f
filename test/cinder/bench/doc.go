// Command bench makes, exports and deletes volumes of a Cinder by the calls of cinder-provisioner,
// in a loop of gophercloud alone. It prints how many volumes a second that gives, for each number
// of loops at a time. Of the provisioner's code it shares only the HTTP transport; the
// provisioner's time is compared with it by hack/bench-cinder.sh.
//
// Start at main in main.go; volume.go has the calls.
package main
