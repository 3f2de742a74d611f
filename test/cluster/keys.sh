# shellcheck shell=bash
# Who may speak to the API server: a token and a kubeconfig for each, and the service accounts' key.
# There is no CA to make: the API server signs its own certificate (apiserver.crt holds leaf and CA,
# with 10.96.0.1 and kubernetes.default.svc in it), and the same file tells everyone whom to trust.

make_keys() {
  mkdir -p "$KUBE_DIR/pki" "$KUBE_DIR/kubeconfig"
  chmod 700 "$KUBE_DIR/pki" "$KUBE_DIR/kubeconfig"
  openssl ecparam -name prime256v1 -genkey -noout -out "$KUBE_DIR/pki/sa.key"
  openssl ec -in "$KUBE_DIR/pki/sa.key" -pubout -out "$KUBE_DIR/pki/sa.pub" 2>/dev/null
  : >"$KUBE_DIR/pki/tokens.csv"
  user admin admin '"system:masters"'
  user controllers system:kube-controller-manager
  user scheduler system:kube-scheduler
  user proxy system:kube-proxy
  local n
  for n in $(seq "$1") 9; do user "node$n" "system:node:node$n" '"system:nodes"'; done
}

# user FILE NAME [GROUPS]: kubeconfig/FILE.conf and a line for --token-auth-file.
user() {
  local token
  token=$(od -An -N16 -tx1 /dev/urandom | tr -d ' \n')
  echo "$token,$2,$1${3:+,$3}" >>"$KUBE_DIR/pki/tokens.csv"
  cat >"$KUBE_DIR/kubeconfig/$1.conf" <<EOF
apiVersion: v1
kind: Config
current-context: flex-lab
clusters: [{name: flex-lab, cluster: {server: "$KUBE_API", certificate-authority: "$KUBE_DIR/pki/apiserver.crt"}}]
users: [{name: "$2", user: {token: "$token"}}]
contexts: [{name: flex-lab, context: {cluster: flex-lab, user: "$2"}}]
EOF
}

admin_token() { sed -n 's/,admin,admin,.*//p' "$KUBE_DIR/pki/tokens.csv"; }
