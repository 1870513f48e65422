# Jobferry. `make help` lists the targets.

GO ?= go
SHELL := bash -euo pipefail

# Tools have a module each: their dependencies don't agree with ours, or with each other's.
CONTROLLER_GEN := $(GO) tool -modfile=tools/controller-gen/go.mod controller-gen
CRD_REF_DOCS   := $(GO) tool -modfile=tools/crd-ref-docs/go.mod crd-ref-docs
GOLANGCI_LINT  := $(GO) tool -modfile=$(CURDIR)/tools/golangci-lint/go.mod golangci-lint
ACTIONLINT     := $(GO) tool -modfile=tools/actionlint/go.mod actionlint
GOTESTSUM      := $(GO) tool -modfile=$(CURDIR)/tools/gotestsum/go.mod gotestsum
HUGO           := $(GO) tool -modfile=$(CURDIR)/tools/hugo/go.mod hugo
GOVULNCHECK    := $(GO) tool -modfile=$(CURDIR)/tools/govulncheck/go.mod govulncheck
RELEASE        := $(GO) -C tools/release run .

# rbac writes the roles of one part, which can be switched off by itself, from the markers in its packages:
# $(call rbac,<part>,<packages>,<folder>)
define rbac
$(CONTROLLER_GEN) rbac:roleName=jobferry-$(1),fileName=role.yaml paths="$(2)" output:rbac:dir=$(3)
endef

# All is compiled in one way, programs, tests and the rig's tools: packages that they share are compiled once.
# Compilers take a fifth less time with larger heaps, and a tenth less without what debuggers need.
export CGO_ENABLED := 0
export GOFLAGS := -trimpath -gcflags=all=-dwarf=false '-toolexec=env GOGC=400' $(GOFLAGS)

# `make lint` vets. So would go test, and each dependency, too: minutes on a machine without caches.
TEST := test -vet=off -ldflags=-w
# gotest runs tests, shows a line for each package, and what has failed once more at the end. Its events
# are kept in bin/tests, for `make slowest`: $(call gotest,<name of the run>) <arguments of go test>
gotest = mkdir -p $(CURDIR)/bin/tests && $(GOTESTSUM) --format pkgname --hide-summary skipped \
	--jsonfile $(CURDIR)/bin/tests/$(1).json -- $(patsubst test,,$(TEST))

# Packages of e2e whose tests `make test-e2e` runs, on real API servers. Without any: all of them, on one
# release of Kubernetes, but for what `make test-more` runs.
E2E ?=
TESTED ?= 1.36
# What `make test` leaves to `make test-more`: folders of e2e for other releases of Kubernetes, for upgrades,
# for Kueue and for the site; folders whose tests run again on other releases; and tests of the same story at length.
MORE_FOLDERS   := dispatch/skew|dispatch/fields|kueue|site|upgrade
# What both leave to `make clients`: its programs take minutes to fetch and build.
CLIENT_FOLDERS := clients/terraform|clients/helm4
MORE_RELEASES  := ./placement ./reflect
LENGTH_FOLDERS := bench|clusters|dashboard|hostile|admission|spanning|worker
MORE_LENGTH    := TestFloodBesideMultiKueue|TestTwoHundredWorkersComeAndGo|TestManyJobs|TestQueues|TestScale|TestSoak|TestSpan|TestAllAtOnce|TestAnswersWithoutAnEnd
# Tests that have a cluster of the oldest release, or of the newest.
MORE_OLDER     := Test.*OldHub|TestClaimedByWebhook|TestWebhookDown|TestStandbyServes|TestCertificate.*|TestBuiltIn|TestLeaving|TestOnAnOlderAPIServer|TestTwoWorkersShareAJob|TestShard|TestGang
# The race detector makes these tests take five times as long, and has nothing to find: packages without a
# goroutine, and tests with very much input, on one.
SEQUENTIAL       := mirror(/.*)?|manager/line/waiting|manager/line/stockout|manager/dispatch|manager/usage|autoscaling|worker/plan
COUNTING_FOLDERS := util/decoded|util/pages|carry/copier|util/jsonscan|manager/packed|manager/job|internal/feed|internal/link|internal/scheduling|internal/devices|usage/podtimes|manager/subresources
COUNTING         := TestListsOfACacheComeInPages|TestLargeObjectsTakeMemoryThatIsReserved|TestOneTenantsJobsTakeLittleMemory|TestHowManyJobsAreHeldWhole|TestJobsOfTinyElementsCountAsTheyAreUnpacked|TestTheWeightOfAJobIsEnough|TestTheLargestJobs|TestExactIsEnough|TestListsAreMadeOfTheirLengths|TestLargeJobsReadWholeTakeLittleMemory|TestForgedMirrorsTakeLittleMemory|TestManyPodsTakeLittleMemory|TestManyNodesTakeLittleMemory|TestTheTimesOfManyPodsTakeLittleMemory|TestManySmallEventsAreNoLargeOne|TestLargeLabelsOfAWorker|TestAWorkerWithVeryManyVolumes|TestHostileWorkers|TestAWorkerThatMakesUpPods|TestSelectorsOfAWorkerAreCheap|TestLabelsOfATermAreAddedAtOnce
E2E_TIMEOUT ?= 25m
# They run the programs that `make build` makes, which go's cache of test results doesn't see: -count 1.
# Without JOBFERRY_BIN, each package builds them in the time of its tests.
# Packages of them at a time: each has clusters of its own, and waits more than it works.
E2E_PARALLEL ?= 4
BASE ?= main
JOBS ?= 500
DURATION ?= 20m
INDEXES ?= 100000
SEEDS ?= 500
PAIRS ?= 10000
GROUPS ?= $(PAIRS)
KUBERNETES ?= 1.34,1.36,1.37
SEED ?= 1
STORIES ?= 10000
FAULTS ?= 100
FLEET ?= 300
CHECKS ?= 100
RELEASES ?= 1.33,1.34,1.35,1.36,1.37
ROUNDS ?= 5
LOAD ?= 4
COPIES ?= 10
FUZZTIME ?= 1m
HUB ?= 1.33 1.35 1.37
WORKER ?= 1.33 1.34 1.35 1.36 1.37
COSIGN ?= cosign

.DEFAULT_GOAL := help

##@ Use

.PHONY: demo
demo: ## Bring up a hub and two workers, run Jobs through them, show it live (KEEP=1 keeps the clusters; JOB_CONTROLLER=embedded)
	@echo "==> Building the demo (the first time: a minute)"
	@$(GO) build -C e2e -o ../bin/demo ./cmd/demo
	@exec bin/demo

.PHONY: rig
rig: ## Bring up a hub and two workers to try things with, until Ctrl-C
	@$(GO) build -C e2e -o ../bin/rig-up ./cmd/rig-up
	@exec bin/rig-up

.PHONY: build
build: ## Build the programs into bin/ (VERSION=v1.2.3; without it, the tag or commit)
	GO='$(GO)' tools/build bin

##@ Check

.PHONY: test
test: test-unit test-release test-alerts rig-build test-e2e ## Every kind of test: pure ones, and those on real API servers of one release of Kubernetes

.PHONY: test-more
test-more: build ## The same stories on other releases of Kubernetes, beside Kueue, and at length
	@echo "==> Control planes of other releases, and Kueue (fetched or built once, then cached)"
	@$(GO) -C e2e run ./cmd/rig-build -version 1.36,1.34,1.37 -tool helm,kueue >/dev/null
	@echo "==> Other releases, upgrades and Kueue"
	@cd e2e && export JOBFERRY_BIN=$(CURDIR)/bin && $(call gotest,more) -count 1 -p $(E2E_PARALLEL) -timeout $(E2E_TIMEOUT) \
		$(patsubst %,./%/...,$(subst |, ,$(MORE_FOLDERS))) $(MORE_RELEASES)
	@echo "==> Tests at length, and those with older and newer clusters"
	@cd e2e && export JOBFERRY_BIN=$(CURDIR)/bin && $(call gotest,length) -count 1 -p $(E2E_PARALLEL) -timeout $(E2E_TIMEOUT) \
		-run '^($(MORE_LENGTH)|$(MORE_OLDER))$$' $(patsubst %,./%,$(subst |, ,$(LENGTH_FOLDERS)))

.PHONY: test-steady
test-steady: ## `make test` ROUNDS=5 times, beside LOAD=4 busy loops: no test depends on the machine's speed
	@for i in $$(seq $(LOAD)); do while :; do :; done & done; trap 'kill $$(jobs -p)' EXIT; \
	for i in $$(seq $(ROUNDS)); do echo "==> Round $$i of $(ROUNDS)"; $(MAKE) --no-print-directory test; done

.PHONY: test-unit
test-unit: ## Tests that need no cluster, with the race detector
	@echo "==> Unit tests (with the race detector; the first run builds for some minutes)"
	@export CGO_ENABLED=1; $(call gotest,unit) -race -timeout 30m -skip '^($(COUNTING))$$' $$($(GO) list ./... | grep -vE '/($(SEQUENTIAL))$$')
	@echo "==> Unit tests of what has no goroutines, and those that count what much input costs"
	@$(call gotest,sequential) -timeout 30m $$($(GO) list ./... | grep -E '/($(SEQUENTIAL))$$')
	@$(call gotest,counting) -timeout 30m -run '^($(COUNTING))$$' $$($(GO) list ./... | grep -E '/($(COUNTING_FOLDERS))$$')

.PHONY: test-release
test-release: ## The program that makes releases, with tiny programs in place of Jobferry's
	@echo "==> Releases"
	@cd tools/release && $(call gotest,release) ./...

.PHONY: test-fuzz
test-fuzz: ## Fuzz what is read from workers and users: each target for FUZZTIME=1m (`make test-unit` runs the seeds)
	@echo "==> Fuzz targets, $(FUZZTIME) each"
	@$(GO) list -f '{{.Dir}}' ./... | while read -r dir; do \
		sed -n 's/^func \(Fuzz[A-Za-z0-9_]*\).*/\1/p' $$dir/*.go | while read -r target; do \
			$(GO) test -run '^$$' -fuzz "^$$target$$" -fuzztime $(FUZZTIME) $$dir </dev/null; \
		done; \
	done

.PHONY: rig-build
rig-build: ## Fetch the control plane for the tests, or build it, once (8 minutes; RIG_BUILD=source always builds)
	@echo "==> The control plane for the tests, Helm and JobSet (fetched or built once, then cached)"
	@$(GO) -C e2e run ./cmd/rig-build -version $(TESTED) -tool helm,jobset,trainer >/dev/null

.PHONY: clean-cache
clean-cache: ## Remove the control planes that were fetched or built
	@$(GO) -C e2e run ./cmd/rig-build -clean

.PHONY: test-e2e
test-e2e: build ## Tests on real API servers (E2E=./dispatch/... for some of them)
	@echo "==> Tests on real API servers"
	@cd e2e && export JOBFERRY_BIN=$(CURDIR)/bin $(if $(E2E),,RIG_HUB=$(TESTED) RIG_WORKER=$(TESTED)) && \
		$(call gotest,e2e) -count 1 -p $(E2E_PARALLEL) -timeout $(E2E_TIMEOUT) \
		$(or $(E2E),-skip '^($(MORE_LENGTH))$$' $$($(GO) list ./... | grep -vE '/e2e/($(MORE_FOLDERS)|$(CLIENT_FOLDERS))(/|$$)'))

.PHONY: test-rules
test-rules: ## What pkg/mirror lets through, held against the API servers' own validation (RELEASES=1.33,1.34,1.35,1.36,1.37 CHECKS=100); `make test` has two of them
	@echo "==> Jobs and statuses against Kubernetes' own validation (the first run compiles it for some minutes)"
	$(GO) -C e2e $(TEST) -count 1 ./reflect -releases $(RELEASES) -rapid.checks=$(CHECKS)

.PHONY: test-alerts
test-alerts: ## The charts' alerts and dashboard, with Prometheus' own parser and engine
	@echo "==> Alerts (the first run compiles Prometheus' engine for some minutes)"
	@cd e2e/alerts && $(call gotest,alerts) ./...

.PHONY: slowest
slowest: ## The slowest twenty tests of the last runs
	@echo "==> The slowest twenty tests of the last runs"
	@cat bin/tests/*.json 2>/dev/null | $(GOTESTSUM) tool slowest --num 20

.PHONY: lint
lint: ## golangci-lint, with the import rules that keep the pure packages pure
	@echo "==> Lint (the first run builds golangci-lint for some minutes)"
	$(GOLANGCI_LINT) run ./...
	for module in e2e e2e/alerts tools/release; do (cd $$module && $(GOLANGCI_LINT) run --config $(CURDIR)/.golangci.yaml ./...); done
	$(ACTIONLINT) -shellcheck= -pyflakes=

.PHONY: vulncheck
vulncheck: ## Known vulnerabilities in what the programs call, by govulncheck (asks vuln.go.dev; VULNDB=file:///... for a copy)
	$(GOVULNCHECK) $(if $(VULNDB),-db $(VULNDB)) ./...
	$(GO) -C tools/release tool -modfile=$(CURDIR)/tools/govulncheck/go.mod govulncheck $(if $(VULNDB),-db $(VULNDB)) ./...

.PHONY: bench
bench: ## Measure the dispatcher beside plain Jobs in one cluster (JOBS=500; more flags in BENCH, see bin/bench flood -help)
	@$(GO) build -C e2e -o ../bin/bench ./cmd/bench
	@exec bin/bench flood -jobs $(JOBS) $(BENCH)

.PHONY: bench-check
bench-check: ## Compare the manager with that of the merge base with BASE=main, by turns: requests, allocations, CPU; fails on what is worse than noise
	@GO='$(GO)' tools/bench-check $(BASE) -jobs 200 -rounds 3 $(BENCH)

.PHONY: bench-scale
bench-scale: ## A real hub, 100 simulated workers, 50,000 live Jobs: memory, a leader's start and end, lost and slow workers (more flags in BENCH, see bin/bench scale -help)
	@$(GO) build -C e2e -o ../bin/bench ./cmd/bench
	@exec bin/bench scale $(BENCH)

.PHONY: soak
soak: ## Jobs come steadily for DURATION=20m, at four fifths of what the machine does, while leaders end and credentials change: memory, goroutines, lag, what's lost (more flags in BENCH, see bin/bench soak -help)
	@$(GO) build -C e2e -o ../bin/bench ./cmd/bench
	@exec bin/bench soak -duration $(DURATION) $(BENCH)

.PHONY: bench-span
bench-span: ## One Job over five workers, one drained and one lost on the way, beside one cluster (INDEXES=100000: 105 minutes; more flags in BENCH, see bin/bench span -help)
	@$(GO) build -C e2e -o ../bin/bench ./cmd/bench
	@exec bin/bench span -indexes $(INDEXES) $(BENCH)

.PHONY: chaos
chaos: ## Jobs of all kinds while processes, links and clocks fail, judged from outside (SEED=1 JOBS=1000 FAULTS=100; more flags in CHAOS, see bin/chaos -help)
	@$(GO) build -C e2e -o ../bin/chaos ./cmd/chaos
	@exec bin/chaos -seed $(SEED) -jobs $(if $(filter file,$(origin JOBS)),1000,$(JOBS)) -faults $(FAULTS) $(CHAOS)

.PHONY: hostile
hostile: ## Jobs beside a worker that is hostile in all ways at once, and beside costly inputs of a tenant and a worker, for ten minutes each; `make test` has a short form
	$(GO) -C e2e test -count 1 -timeout 90m -v -run 'TestAllAtOnce|TestCostlyInputs' ./hostile -args -jobs 100 -flat 10m -places 10m -times 2

.PHONY: e2e-real
e2e-real: ## Helm, images and Jobs on real nodes (kubelet, containerd); needs root, and says loudly where it can't run
	@$(GO) build -C e2e -o ../bin/e2e-real ./cmd/e2e-real
	@exec bin/e2e-real

.PHONY: conformance
conformance: ## Kubernetes' own tests of Jobs, and JobSet's (PART=integration,drop-in,dispatcher,hub,jobset SHORT=1: see docs/reference/conformance.md); real nodes as for e2e-real
	@$(GO) build -C e2e -o ../bin/conformance ./cmd/conformance
	@exec bin/conformance $(if $(PART),-part $(PART)) $(if $(SHORT),-short) -logs bin/conformance-logs

.PHONY: test-upgrade
test-upgrade: build ## Jobs that run while Jobferry is upgraded and rolled back ROUNDS=5 times, and Kubernetes, too (COPIES=10 of each Job; JOBFERRY_PREVIOUS=v1.2.3); `make test` has a short form
	JOBFERRY_BIN=$(CURDIR)/bin $(GO) -C e2e test -count 1 -timeout 60m -v ./upgrade -args -rounds $(ROUNDS) -copies $(COPIES)

.PHONY: e2e-kueue
e2e-kueue: ## With the real Kueue: hundreds of Jobs of two teams (FLEET=300); `make test` has a short form
	@$(GO) -C e2e run ./cmd/rig-build -tool kueue >/dev/null
	$(GO) -C e2e test -count 1 -timeout 30m ./kueue/... -args -fleet $(FLEET)

.PHONY: clients
clients: build ## Terraform, its provider for Kubernetes, and Helm 4, built from their modules once, manage dispatched Jobs
	@$(GO) -C e2e run ./cmd/rig-build -tool terraform,terraform-provider-kubernetes,helm4 >/dev/null
	JOBFERRY_BIN=$(CURDIR)/bin $(GO) -C e2e test -count 1 -timeout 20m -v ./clients/...

.PHONY: matrix
matrix: build ## The main stories for each pair of Kubernetes releases (HUB="1.33 1.35 1.37" WORKER="1.36 1.37"); writes docs/reference/compatibility.md, and continues where it was stopped
	@$(GO) build -C e2e -o ../bin/matrix ./cmd/matrix
	@JOBFERRY_BIN=$(CURDIR)/bin exec bin/matrix -hub "$(HUB)" -worker "$(WORKER)" -results bin/matrix-results -page docs/reference/compatibility.md $(MATRIX)

.PHONY: differential
differential: ## The built-in and the embedded Job controller get the same Jobs, and must agree (SEEDS=500 SEED=1)
	$(GO) -C e2e run ./differential -seeds $(SEEDS) -seed $(SEED)

.PHONY: placement-judge
placement-judge: ## Random clusters, with a Job or a group of Jobs: our answer and kube-scheduler's deeds must agree (PAIRS=10000 GROUPS=10000 SEED=1 KUBERNETES=1.34,1.36,1.37)
	$(GO) -C e2e run ./placement -pairs $(PAIRS) -groups $(GROUPS) -seed $(SEED) -releases $(KUBERNETES)

.PHONY: differential-shards
differential-shards: ## One Job controller and the manager, which divides them, get the same Jobs in memory, and must agree (STORIES=10000 SEED=1)
	$(GO) test -count 1 -timeout 60m -run TestDividedEndsAsWhole ./pkg/manager/job -args -stories $(STORIES) -story $(SEED)

.PHONY: bench-dashboard
bench-dashboard: build ## The dashboard with 5,000 Jobs and 100,000 indexes in Chromium: time to show a page, memory; `make test` has a short form
	JOBFERRY_BIN=$(CURDIR)/bin $(GO) -C e2e test -count 1 -timeout 20m -v -run TestManyJobs ./dashboard -args -jobs 5000 -indexes 100000 -slowest 1s -slowest-sort 300ms

.PHONY: bench-worker
bench-worker: ## Measure the embedded Job controller beside the built-in
	@$(GO) build -C e2e -o ../bin/bench ./cmd/bench
	@exec bin/bench worker $(BENCH)

.PHONY: verify
verify: ## Generated files and formatting leave no diff
	@echo "==> Verify"
	@before=$$(git diff | sha256sum); $(MAKE) --no-print-directory generate fmt >/dev/null; \
	if [ "$$before" != "$$(git diff | sha256sum)" ] || [ -n "$$(git ls-files --others --exclude-standard)" ]; then \
		git status --short; echo "verify: run 'make generate fmt' and commit what it changes" >&2; exit 1; \
	fi

.PHONY: site
site: ## Build the docs as a site in bin/site, with Hugo (the first run compiles it for some minutes; VERSION=v1.2.3 for links to code)
	@echo "==> The site (the first run compiles Hugo for some minutes)"
	@HUGO_PARAMS_REF=$(or $(VERSION),main) $(HUGO) --source tools/site --destination $(CURDIR)/bin/site --cleanDestinationDir --panicOnWarning --noBuildLock

##@ Release

.PHONY: release
release: ## Make the files of a release in dist/, from a clean checkout (VERSION=v1.2.3)
	@$(RELEASE) build -root $(CURDIR) -dist $(CURDIR)/dist -version '$(VERSION)'

.PHONY: push
push: ## Push the image and the charts in dist/ (REGISTRY=ghcr.io/jobferry)
	@$(RELEASE) push -dist $(CURDIR)/dist -registry '$(REGISTRY)'

.PHONY: sign
sign: ## Sign what `make push` has pushed, and the checksums, with cosign (REGISTRY=ghcr.io/jobferry; SIGN='--key cosign.key')
	@refs=$$($(RELEASE) refs -dist $(CURDIR)/dist -registry '$(REGISTRY)'); $(COSIGN) sign --yes $(SIGN) $$refs
	@$(COSIGN) sign-blob --yes $(SIGN) --bundle dist/SHA256SUMS.sigstore.json dist/SHA256SUMS

##@ Change

.PHONY: generate
generate: ## Write the files that are derived from the code
	for module in . e2e e2e/alerts tools/release; do $(GO) -C $$module mod tidy; done
	$(CONTROLLER_GEN) object paths=./pkg/api/...
	$(CONTROLLER_GEN) crd paths=./pkg/api/... output:crd:dir=config/crd
	$(call rbac,manager,./pkg/manager;./pkg/manager/clusters,config/rbac)
	$(call rbac,carry,./pkg/manager/carry,config/carry)
	$(call rbac,subresources,./pkg/manager/subresources,config/subresources)
	$(call rbac,pods,./pkg/manager/pods;./pkg/manager/subresources/kubelet,config/pods)
	$(call rbac,pods-certificate,./pkg/manager/subresources/kubelet/nodecert,config/pods/certificate)
	$(call rbac,admission,./pkg/manager/admission,config/webhook)
	$(call rbac,kueue,./pkg/manager/kueue,config/kueue)
	$(call rbac,worker,./pkg/worker,config/worker)
	$(call rbac,metrics-auth,./pkg/util/process,config/metrics-auth)
	$(CRD_REF_DOCS) --source-path=pkg/api --config=tools/crd-ref-docs/config.yaml --renderer=markdown --output-path=docs/reference/api.md --log-level=ERROR
	cp config/crd/jobferry.dev_*.yaml charts/jobferry/files/crd/
	cp $(filter-out %/kustomization.yaml,$(wildcard config/admission/*/*.yaml)) charts/jobferry/files/admission/
	cp config/rbac/role.yaml charts/jobferry/files/rbac/manager.yaml
	cp config/rbac/users.yaml charts/jobferry/files/rbac/users.yaml
	for part in carry subresources pods kueue metrics-auth; do cp config/$$part/role.yaml charts/jobferry/files/rbac/$$part.yaml; done
	cp config/pods/certificate/role.yaml charts/jobferry/files/rbac/pods-certificate.yaml
	cp config/webhook/role.yaml charts/jobferry/files/rbac/admission.yaml
	cp config/metrics-auth/role.yaml charts/jobferry-worker/files/rbac/metrics-auth.yaml
	cp config/worker/role.yaml charts/jobferry-worker/files/rbac/worker.yaml

.PHONY: dashboard-pictures
dashboard-pictures: build ## Take the pictures of docs/how-to/dashboard.md, in Chromium (Debian package chromium)
	JOBFERRY_BIN=$(CURDIR)/bin $(GO) -C e2e test -count 1 -timeout 20m -run 'TestDashboard|TestQueues' ./dashboard -args -pictures $(CURDIR)/docs/pictures

.PHONY: grafana-picture
grafana-picture: ## Draw the panels of Grafana's dashboard from a chaos run (SEED=1 JOBS=1000 FAULTS=100), in Chromium
	$(GO) build -C e2e -o ../bin/chaos ./cmd/chaos
	bin/chaos -seed $(SEED) -jobs $(if $(filter file,$(origin JOBS)),1000,$(JOBS)) -faults $(FAULTS) -samples $(CURDIR)/bin/samples.txt $(CHAOS)
	$(GO) build -C e2e/alerts -o $(CURDIR)/bin/picture ./picture
	bin/picture -samples bin/samples.txt -out bin/grafana.svg
	chromium --headless --no-sandbox --hide-scrollbars --window-size=1200,1720 --screenshot=$(CURDIR)/docs/pictures/grafana.png file://$(CURDIR)/bin/grafana.svg

.PHONY: pin-images
pin-images: ## Pin the Dockerfile's base images by the digests that their tags have now (asks the registries, through docker)
	tools/pin-images Dockerfile

.PHONY: fmt
fmt: ## Format the code
	gofmt -w $$(git ls-files '*.go')

.PHONY: help
help: ## This list
	@awk 'BEGIN {FS = ":.*##"} \
		/^##@/ {printf "\n%s\n", substr($$0, 5)} \
		/^[a-zA-Z0-9_-]+:.*##/ {printf "  %-12s %s\n", $$1, $$2}' $(MAKEFILE_LIST)
