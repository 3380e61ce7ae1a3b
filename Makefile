# The first target answers `make`: it lists the others.
.DEFAULT_GOAL := help
SHELL := /bin/bash
.SHELLFLAGS := -eu -o pipefail -c
.DELETE_ON_ERROR:

VERSION ?= $(shell git describe --tags --always --dirty 2>/dev/null || echo unknown)
IMG     ?= valkey.io/valkey-operator:dev
ARCHIVE := dist/valkey-operator.tar
TIER    ?= ci
FUZZTIME ?= 30s

# The lab keeps its programs, images and state here.
export LAB ?= $(HOME)/.cache/valkey-operator-lab
NODES ?= 3

# The same flags for programs, tests and linters: each package is compiled once.
export CGO_ENABLED := 0
export GOFLAGS := -trimpath -buildvcs=false
LDFLAGS := -s -w -X main.version=$(VERSION)

##@ The product

help: ## list the targets
	@awk 'BEGIN {FS = ":.*## "} \
		/^##@ / {printf "\n%s\n", substr($$0, 5)} \
		/^[a-z-]+:.*## / {printf "  %-16s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

build: ## static bin/manager and bin/agent
	go build -ldflags '$(LDFLAGS)' -o bin/ ./cmd/manager ./cmd/agent

image: build bin/.tools ## the image as an OCI archive, without Docker: dist/valkey-operator.tar
	bin/image -o $(ARCHIVE) -name $(IMG) bin/manager bin/agent

# What an upgrade of the operator might bring: one more annotation on pods, one
# more default in the settings. The journeys upgrade to it and see no restart.
image-next: bin/.tools
	@mkdir -p dist/next
	go build -ldflags '$(LDFLAGS)-next -X valkey.io/valkey-operator/internal/build.variant=next' -o dist/next/ ./cmd/manager ./cmd/agent
	bin/image -o dist/valkey-operator-next.tar -name $(IMG)-next dist/next/manager dist/next/agent

manifest: bin/.tools ## dist/install.yaml for any cluster: make manifest IMG=registry/name:tag
	@mkdir -p dist && rm -rf dist/config && cp -r config dist/config
	cd dist/config/default && ../../../bin/kustomize edit set image valkey.io/valkey-operator=$(IMG)
	bin/kustomize build dist/config/default >dist/install.yaml
	@rm -rf dist/config && echo "dist/install.yaml installs $(IMG)"

generate: bin/.tools ## write generated code, CRDs, RBAC and docs/reference.md
	bin/controller-gen object paths=./api/...
	bin/controller-gen crd paths=./api/... output:crd:dir=config/crd
	bin/crd-ref-docs --source-path=api/v1alpha1 --config=docs/reference.yaml \
		--renderer=markdown --output-path=docs/reference.md --log-level=ERROR
	bin/controller-gen rbac:roleName=valkey-operator paths=./internal/controller/... output:rbac:dir=config/rbac

##@ Checks

GENERATED := api/v1alpha1/zz_generated.deepcopy.go config/crd config/rbac/role.yaml docs/reference.md

check-generate: ## fail when a generated file is out of date
	@before=$$(mktemp -d) && trap 'rm -rf "$$before"' EXIT && \
	cp -r --parents $(GENERATED) "$$before" && \
	$(MAKE) --no-print-directory generate >/dev/null && \
	for file in $(GENERATED); do \
		diff -ru "$$before/$$file" "$$file" || { echo "$$file was out of date: commit what 'make generate' writes"; exit 1; }; \
	done && echo "generated files are up to date"

# Two programs of the lab are nothing but imports, of all of Kubernetes.
lint: bin/.tools ## golangci-lint over the product, the tools and the lab
	bin/golangci-lint run ./...
	cd tools && ../bin/golangci-lint run ./...
	cd lab && ../bin/golangci-lint run $$(go list -f '{{.Dir}}' ./... | grep -v -e cmd/kubelab -e cmd/coredns)

# Packages whose tests need real servers carry the tag `servers`.
test: servers ## unit, CRD, architecture and contract tests (against real 8.1 and 9.1 servers)
	go test -tags servers ./...

test-api: lab-build ## tests against a real API server on the loopback interface
	go test -tags apiserver ./internal/apitest/...

fuzz: ## each fuzz target for FUZZTIME, and clusters in weather that no test has seen
	go test ./internal/plan/cluster -run='Weather|TheNewest' -rapid.checks=500 -rapid.seed=$$(date +%s)
	@grep -rlE '^func Fuzz' --include='*_test.go' internal | while read -r file; do \
		for target in $$(sed -nE 's/^func (Fuzz[A-Za-z0-9_]*).*/\1/p' "$$file"); do \
			echo "$$target"; go test -run='^$$' -fuzz="^$$target$$" -fuzztime=$(FUZZTIME) "./$$(dirname "$$file")"; \
		done; \
	done

##@ The lab: a real Kubernetes on this machine

JOURNEY := $(LAB)/bin/journey
# The lab is the default: with KUBECONFIG pointing at another cluster it is not started.
LAB_UP := $(if $(filter-out $(LAB)/state/kubeconfig,$(KUBECONFIG)),lab-build,lab-up)

demo: $(LAB_UP) image ## a persistent cluster comes up, loses every pod, grows: in under five minutes
	$(JOURNEY) demo

test-lab: $(LAB_UP) image image-next ## the journeys of a tier: make test-lab TIER=ci|long
	$(JOURNEY) run --tier $(TIER)

journey: $(LAB_UP) image image-next ## one journey or more: make journey NAME=growth (without NAME: list them)
	$(JOURNEY) $(if $(NAME),run $(NAME),list)

bench: $(LAB_UP) image ## the figures, next to bare Kubernetes in the same run
	$(JOURNEY) bench

lab-up: lab-build ## start the lab, or finish starting it (NODES=3)
	$(LAB)/bin/lab up --nodes $(NODES)

lab-down: ## stop the lab; nothing of it stays behind
	@if [ -x $(LAB)/bin/lab ]; then $(LAB)/bin/lab down; else echo "no lab has been built"; fi

lab-status: ## what runs
	@if [ -x $(LAB)/bin/lab ]; then $(LAB)/bin/lab status; else echo "no lab has been built"; fi

lab-env: ## print what gives a shell its kubectl: eval "$(make -s lab-env)"
	@$(LAB)/bin/lab env

lab-build: ## build the lab's programs, those that are out of date
	lab/build.sh

servers: lab-build
	@$(LAB)/bin/lab servers >/dev/null

# Tools are built anew only when their pins or sources change.
bin/.tools: tools/go.mod tools/go.sum tools/lint/go.mod tools/lint/go.sum tools/cmd/image/main.go
	@echo "building the tools (the first time takes some minutes)"
	cd tools && go build -o ../bin/ sigs.k8s.io/controller-tools/cmd/controller-gen \
		sigs.k8s.io/kustomize/kustomize/v5 github.com/elastic/crd-ref-docs ./cmd/image
	cd tools/lint && go build -o ../../bin/ github.com/golangci/golangci-lint/v2/cmd/golangci-lint
	@touch $@

.PHONY: help build image image-next manifest generate check-generate lint test test-api fuzz demo test-lab journey bench \
	lab-up lab-down lab-status lab-env lab-build servers
