package cluster

import (
	"fmt"

	"valkey.io/valkey-operator/lab/internal/home"
	"valkey.io/valkey-operator/lab/internal/pki"
)

func pkiStore(h home.Home) pki.Store { return pki.Store{Dir: h.State("pki")} }

var (
	caRequest    = pki.Request{Name: "ca", CN: "lab-ca"}
	frontRequest = pki.Request{Name: "front-ca", CN: "lab-front-proxy-ca"}
	adminsGroup  = []string{"system:masters"}
)

// user is a client of the API server and where its kubeconfig lies.
type user struct {
	name, cn string
	orgs     []string
	file     string
	server   string
}

// ensureAccess makes the control plane's certificates and everybody's
// kubeconfigs.
func ensureAccess(h home.Home, port int) error {
	store := pkiStore(h)
	ca, err := store.Ensure(caRequest)
	if err != nil {
		return err
	}
	front, err := store.Ensure(frontRequest)
	if err != nil {
		return err
	}
	for _, r := range []pki.Request{
		{Name: "front", CN: "front-proxy-client", Signer: front},
		{Name: "apiserver", CN: "kube-apiserver", Signer: ca, Hosts: []string{
			hubIP, apiServiceIP, "127.0.0.1", "localhost",
			"kubernetes", "kubernetes.default", "kubernetes.default.svc", "kubernetes.default.svc.cluster.local",
		}},
		{Name: "apiserver-kubelet", CN: "kube-apiserver-kubelet", Orgs: adminsGroup, Signer: ca},
		{Name: "sa", CN: "service-accounts"},
	} {
		if _, err := store.Ensure(r); err != nil {
			return err
		}
	}
	if _, err := store.PublicKey("sa"); err != nil {
		return err
	}
	portal := fmt.Sprintf("https://127.0.0.1:%d", port)
	for _, u := range []user{
		{"kcm", "system:kube-controller-manager", nil, h.State("kcm.kubeconfig"), apiInside},
		{"scheduler", "system:kube-scheduler", nil, h.State("scheduler.kubeconfig"), apiInside},
		{"proxy", "system:kube-proxy", nil, h.State("proxy.kubeconfig"), apiInside},
		{"csi", "lab:csi", adminsGroup, h.State("csi.kubeconfig"), apiInside},
		{"admin", "lab:admin", adminsGroup, h.State("admin-inside.kubeconfig"), apiInside},
		{"admin", "lab:admin", adminsGroup, h.Kubeconfig(), portal},
	} {
		if err := ensureUser(store, ca, u); err != nil {
			return err
		}
	}
	return nil
}

func ensureUser(store pki.Store, ca *pki.Pair, u user) error {
	if _, err := store.Ensure(pki.Request{Name: u.name, CN: u.cn, Orgs: u.orgs, Signer: ca}); err != nil {
		return err
	}
	return store.Write(pki.Kubeconfig{File: u.file, Server: u.server, CA: caRequest.Name, User: u.name})
}

// ensureNodeAccess makes a node's own certificates.
func ensureNodeAccess(h home.Home, n int) error {
	store, name := pkiStore(h), nodeName(n)
	ca, err := store.Ensure(caRequest)
	if err != nil {
		return err
	}
	identity, group := "system:node:"+name, []string{"system:nodes"}
	if _, err := store.Ensure(pki.Request{Name: servingPair(name), CN: identity, Orgs: group, Signer: ca, Hosts: []string{name, nodeIP(n)}}); err != nil {
		return err
	}
	return ensureUser(store, ca, user{"kubelet-" + name, identity, group, h.State(name, "kubelet.kubeconfig"), apiInside})
}

func servingPair(node string) string { return "kubelet-serving-" + node }
