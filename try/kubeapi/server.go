package kubeapi

import (
	"crypto/rand"
	"crypto/subtle"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"strconv"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes"
)

// patience is how long a client may take to send its headers.
const patience = 10 * time.Second

// Server is an API server in front of a client.
type Server struct {
	listener  net.Listener
	server    *http.Server
	token     string
	namespace string
	authority []byte
}

// New starts a server that has the client carry out its requests. The namespace is that of the
// script's pod.
func New(client kubernetes.Interface, namespace string) (*Server, error) {
	loopback := net.IPv4(127, 0, 0, 1)
	certificate, authority, err := selfSigned(loopback)
	if err != nil {
		return nil, fmt.Errorf("make a certificate: %w", err)
	}
	listener, err := net.ListenTCP("tcp", &net.TCPAddr{IP: loopback})
	if err != nil {
		return nil, err
	}
	s := &Server{
		listener: listener, token: rand.Text(), namespace: namespace, authority: authority,
	}
	s.server = &http.Server{
		Handler:           s.authenticate(handlers(client, namespace)),
		ReadHeaderTimeout: patience,
		TLSConfig: &tls.Config{
			Certificates: []tls.Certificate{certificate}, MinVersion: tls.VersionTLS12,
		},
		// A script that does not trust the certificate says so itself.
		ErrorLog: log.New(io.Discard, "", 0),
	}
	go func() { _ = s.server.ServeTLS(listener, "", "") }() // it ends by Close
	return s, nil
}

// URL returns where the server is.
func (s *Server) URL() string { return "https://" + s.listener.Addr().String() }

// Files returns what a pod has in /var/run/secrets/kubernetes.io/serviceaccount, by name.
func (s *Server) Files() map[string][]byte {
	return map[string][]byte{
		"token": []byte(s.token), "namespace": []byte(s.namespace), "ca.crt": s.authority,
	}
}

// Close ends the server.
func (s *Server) Close() { _ = s.server.Close() }

// authenticate lets through what has the token. Every user of the machine can connect.
func (s *Server) authenticate(next http.Handler) http.Handler {
	want := []byte("Bearer " + s.token)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if subtle.ConstantTimeCompare([]byte(r.Header.Get("Authorization")), want) != 1 {
			refuse(w, apierrors.NewUnauthorized("Unauthorized"))
			return
		}
		next.ServeHTTP(w, r)
	})
}

// handlers returns what the roles of a provisioner allow.
func handlers(client kubernetes.Interface, namespace string) http.Handler {
	const pvs = "/api/v1/persistentvolumes"
	secrets := "/api/v1/namespaces/" + namespace + "/secrets"
	core := client.CoreV1()
	mux := http.NewServeMux()
	mux.Handle("POST "+pvs, create("PersistentVolume", core.PersistentVolumes().Create))
	mux.Handle("GET "+pvs+"/{name}", get("PersistentVolume", core.PersistentVolumes().Get))
	mux.Handle("POST "+secrets, create("Secret", core.Secrets(namespace).Create))
	mux.Handle("DELETE "+secrets+"/{name}", remove(core.Secrets(namespace).Delete))
	mux.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) {
		refuse(w, apierrors.NewForbidden(schema.GroupResource{}, "",
			fmt.Errorf("the pod of a provisioner cannot %s %s", r.Method, r.URL.Path)))
	})
	return mux
}

// refuse answers with the Status of an error. An error without one is the client's own: its API
// server has not answered.
func refuse(w http.ResponseWriter, err error) {
	known := apierrors.APIStatus(apierrors.NewInternalError(err))
	_ = errors.As(err, &known)
	status := known.Status()
	status.TypeMeta = metav1.TypeMeta{APIVersion: "v1", Kind: "Status"}
	if details := status.Details; details != nil && details.RetryAfterSeconds > 0 {
		w.Header().Set("Retry-After", strconv.Itoa(int(details.RetryAfterSeconds)))
	}
	answer(w, max(int(status.Code), http.StatusBadRequest), status)
}

func answer(w http.ResponseWriter, code int, body any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(code)
	_ = json.NewEncoder(w).Encode(body)
}
