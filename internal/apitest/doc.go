// Package apitest holds tests of the operator against a real API server: who
// owns which field, what is written and what is not, which permissions do,
// what is refused and in which words.
//
// It is tests alone, behind the build tag apiserver (make test-api). One API
// server with its etcd serves the whole package; no kubelet, driver or garbage
// collector runs there, so the tests play them.
package apitest
