// Package answerlimit bounds how much of an answer of the API server is read. client-go reads each
// answer as a whole, and others write what is in some. 455 events of 1.4 MB about one pod once
// ended every dispatcher that asked for them (TestOnlyACauseIsLostByLargeEvents). A limit of a list
// counts objects, and no bytes. Start reading at With.
package answerlimit
