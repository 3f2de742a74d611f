# make help lists the targets. Everything that needs root or network namespaces says so.
SHELL := /bin/bash
.DELETE_ON_ERROR:

export CGO_ENABLED ?= 0
# What --version says. Where there is no git, both are empty and the binaries say "unknown".
VERSION ?= $(shell git describe --tags --always --dirty 2>/dev/null)
COMMIT ?= $(shell git rev-parse HEAD 2>/dev/null)
MODULE := github.com/flex-provisioner/flex-provisioner
PACKAGE := $(MODULE)/internal/version
GOFLAGS_BUILD = -trimpath -buildvcs=false \
	-ldflags="-s -w -buildid= -X $(PACKAGE).version=$(VERSION) -X $(PACKAGE).commit=$(COMMIT)"
BINARIES := flex-dispatcher cinder-provisioner flex kubectl-flex
BIN := bin
TOOL := go tool -modfile=tools.mod
# The packages whose code shares memory between goroutines. The race detector has nothing to find in the others, and slows them down five times.
SHARES_MEMORY = $(sort $(dir $(shell grep -rlE '^\s+go \w|\bsync\.|\batomic\.' --include='*.go' --exclude='*_test.go' --exclude-dir={test,hack,fakecluster} .)))
# The tests of these packages that are about concurrency, by their names. make test leaves out those that try every kill point, or that simulate hours. make race has all of them.
AT_ONCE := AtOnce|Batch|Burst|Cache|HoldUp|Leader|Panic|Replica|Restart|Slot|Stop|Watch
# A test is over before its garbage matters.
GO_TEST := GOGC=400 go test -ldflags=-w -p 4 -timeout 20m
SCRIPTS = $(shell git ls-files '*.sh') .ci/run

.PHONY: help
help: ## list the targets
	@awk -F ':.*## ' '/^[a-z0-9-]+:.*## / {printf "  %-14s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

.PHONY: deps
deps: ## install what is missing, by apt (root)
	@hack/deps.sh

.PHONY: build
build: ## build the binaries into bin/, static
	@mkdir -p $(BIN)
	go build $(GOFLAGS_BUILD) -o $(BIN)/ $(patsubst %,./cmd/%,$(filter-out flex,$(BINARIES)))
	$(if $(filter flex,$(BINARIES)),go build $(GOFLAGS_BUILD) -tags nethttpomithttp2 -o $(BIN)/ ./cmd/flex) # HTTP/2, which it does not use, is 400 KB of it

.PHONY: try
try: ## build kubectl flex, and test a recipe on this machine by it, without a cluster; needs Go, no root
	@hack/need-go.sh
	@mkdir -p $(BIN)
	go build $(GOFLAGS_BUILD) -o $(BIN)/ ./cmd/kubectl-flex
	$(BIN)/kubectl-flex try configmaps/node-directory.yaml

.PHONY: test
test: ## every unit and controller test, and the concurrent ones a second time with the race detector; needs gcc and the Go modules, no root
	CGO_ENABLED=1 $(GO_TEST) -race -run '$(AT_ONCE)' -skip 'AtAny|AfterAny|OverTime' $(SHARES_MEMORY)
	$(GO_TEST) ./...
	cd hack/release && go test ./...

# Helm's engine takes minutes to compile once, so make test only checks what needs no rendering, and
# make check has this.
.PHONY: chart
chart: ## render the Helm chart by Helm's engine, and compare it with deploy/; no root
	cd test/chart && go vet ./... && go vet -tags e2e ./... && go test -count=1 ./...

.PHONY: race
race: ## every test of the packages that use goroutines or locks, with the race detector; minutes
	CGO_ENABLED=1 $(GO_TEST) -race $(SHARES_MEMORY)

.PHONY: model
model: ## explore what can happen to one claim in full size; minutes
	MODEL=full go test -count=1 -timeout 30m -v -run '^TestModel' ./test/model

# In the package's own directory go test prints what was reached, also when all is well.
.PHONY: sim
sim: ## simulate clusters with people and faults in them: SEEDS=10000 of them, or SEED=n with its story; minutes
	cd test/sim && SIM_SEEDS=$(or $(SEEDS),10000) SIM_SEED=$(SEED) $(GO_TEST) -timeout 45m -count=1 $(if $(SEED),-v -run '^TestSeeds',-run '^Test(Seeds|HardWorlds)')

.PHONY: mutants
mutants: ## change the code in one place at a time, and see the tests find each change: all of them, or MUTANT='REGEXP OF NAMES'; at most 40 minutes
	go test -tags mutants -count=1 -timeout 90m -v -run '$(if $(MUTANT),^TestMutantsAreFound$$/each/($(MUTANT)),^Test)' ./test/mutants

.PHONY: measure
measure: ## how much there is to know of the dispatcher, as ARCHITECTURE.md lists it
	@go run ./test/measure

.PHONY: fuzz
fuzz: ## fuzz every parser, FUZZ_TIME=60s each
	@hack/fuzz.sh

.PHONY: bench-memory
bench-memory: deps build ## measure memory with 100,000 claims, against the shipped limit and beside csi; minutes
	@hack/bench-large.sh memory

.PHONY: bench-scale
bench-scale: deps build ## measure start, rest and failover with 1,000 to 100,000 claims in a real API server; minutes, into bin/bench-scale
	@hack/bench-large.sh scale

.PHONY: bench
bench: deps build ## claims a second, beside the peers: BENCH=quick in minutes, the whole in more than an hour; hack/bench.sh says more (root)
	@hack/bench.sh

# The packages whose tests compare with golden files define the flag -update, or have it from the fixture.
GOLDEN = $(sort $(dir $(shell grep -rlE 'flag.Bool."update"|fixture[.]Golden' --include=*_test.go .)))

.PHONY: golden
golden: ## rewrite the golden files of all tests; look at the difference before you commit it
	go test -count=1 $(GOLDEN:%/=%) -update

# npm is needed once, and only here: the pages are plain Markdown.
docs/site/node_modules: docs/site/package-lock.json
	cd docs/site && npm ci
	@touch $@

.PHONY: site
site: docs/site/node_modules ## the pages as a site, into bin/site; needs Node, and npm's registry once
	cd docs/site && npx vitepress build

.PHONY: fmt
fmt: ## format the Go code
	$(TOOL) golangci-lint fmt

.PHONY: lint
lint: ## golangci-lint, shellcheck
	$(TOOL) golangci-lint run --allow-parallel-runners
	$(TOOL) golangci-lint run --allow-parallel-runners --build-tags e2e,long,storms,everyday,kube136,mutants,recipes,boxes,kernels ./test/e2e/... ./test/mutants ./test/recipes/...
	lint=$$($(TOOL) -n golangci-lint) && for module in test/chart hack/release; do (cd $$module && "$$lint" run --config ../../.golangci.yml --allow-parallel-runners) || exit; done
	shellcheck -x $(SCRIPTS)
	hack/run-docs.sh --check docs/cinder.md
	hack/run-docs.sh --check docs/migrate.md
	hack/run-docs.sh --check docs/migrate-files.md
	hack/run-docs.sh --check docs/install.md
	hack/run-docs.sh --check docs/release.md
	for page in docs/recipes/*.md; do hack/run-docs.sh --check "$$page" || exit; done

.PHONY: check
check: deps lint chart ## lint, format, go.mod, subjects of commits and the rendered chart: everything a machine can tell without running the programs
	hack/check-commits.sh
	$(TOOL) golangci-lint fmt --diff
	hack/check-monitoring.sh
	go mod tidy -diff
	cd test/cluster && for mod in *.mod; do go mod tidy -modfile=$$mod -diff || exit 1; done
	cd test/chart && go mod tidy -diff
	cd hack/release && go mod tidy -diff && go vet ./... && go vet -tags dist ./... && go tool actionlint
	go vet ./...
	go vet -tags e2e,long,storms,everyday,mutants,recipes,boxes,kernels ./test/e2e ./test/mutants ./test/recipes/...

.PHONY: vuln
vuln: build ## known vulnerabilities in the code, and in the binaries as they ship; needs the internet, or VULNDB=file:///DIRECTORY
	@VULNDB=$(VULNDB) hack/vuln.sh

.PHONY: images
images: deps build ## build every image FROM scratch with buildah (root)
	@hack/images.sh

.PHONY: release
release: ## build all of a release into dist/: VERSION=v0.1.0, REGISTRY=registry.example/path; no root: docs/release.md
	@hack/release/release.sh

.PHONY: cluster-up cluster-down
cluster-up: deps ## a real Kubernetes with two nodes on this machine; KUBE=1.35.4 for another version (root)
	@test/cluster/up.sh
cluster-down: ## end it; nothing stays behind (root)
	@test/cluster/down.sh

.PHONY: cluster-smoke
cluster-smoke: cluster-up ## prove the cluster itself: nodes, routes, folders, exit codes (root)
	@test/cluster/smoke.sh

.PHONY: cinder-up cinder-down
cinder-up: deps ## a real Cinder: CINDER=17|21|26|28|29 MODE=noauth|keystone BACKENDS=lvm,lvmmp,far,fc,nvme,nfs,ceph (root)
	@test/cinder/up.sh
cinder-down: ## end it; nothing stays behind (root)
	@test/cinder/down.sh

.PHONY: deploy undeploy
deploy: deps build cluster-up ## load the images into the cluster and deploy two replicas (root)
	@hack/deploy.sh
undeploy: build ## take them away again; volumes stay in the storage, and are listed (root)
	@hack/undeploy.sh

.PHONY: demo
demo: ## from nothing to a bound claim and back; KEEP=1 leaves it running (root)
	@hack/demo.sh

.PHONY: e2e
e2e: deps build ## the tests against both real systems, as Go tests; minutes; KUBE=1.35.4 for another Kubernetes (root)
	@hack/e2e.sh

.PHONY: e2e-long
e2e-long: deps build ## every suite against Cinder in each mode, four releases of it, every backend, the commands of the docs, e2e on the older Kubernetes, Kubernetes' own storage suite; PART=NAME runs one (root)
	@hack/e2e-long.sh
