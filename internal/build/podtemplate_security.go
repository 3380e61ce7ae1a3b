package build

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	corev1ac "k8s.io/client-go/applyconfigurations/core/v1"

	"valkey.io/valkey-operator/internal/agent/protocol"
	"valkey.io/valkey-operator/internal/name"
)

// Probes ask the agent, which knows more than a connection to the server
// tells: it also answers while the server is held, loads, or refuses writes.
const (
	// startupFailures, one a second: how long a server may neither answer nor
	// make progress with loading before its container is restarted.
	startupFailures = 600
	// readyFailures, one a second: one late answer does not take a member out
	// of the client Service.
	readyFailures = 2
	readySeconds  = 2
	livePeriod    = 10
	liveFailures  = 3
	liveSeconds   = 5
)

func withProbes(container *corev1ac.ContainerApplyConfiguration) *corev1ac.ContainerApplyConfiguration {
	return container.
		WithStartupProbe(probe(protocol.PathStarted).
			WithPeriodSeconds(1).WithTimeoutSeconds(readySeconds).WithFailureThreshold(startupFailures)).
		WithReadinessProbe(probe(protocol.PathReady).
			WithPeriodSeconds(1).WithTimeoutSeconds(readySeconds).WithFailureThreshold(readyFailures)).
		WithLivenessProbe(probe(protocol.PathLive).
			WithPeriodSeconds(livePeriod).WithTimeoutSeconds(liveSeconds).WithFailureThreshold(liveFailures))
}

func probe(path string) *corev1ac.ProbeApplyConfiguration {
	return corev1ac.Probe().WithHTTPGet(corev1ac.HTTPGetAction().
		WithPath(path).WithPort(intstr.FromString(name.PortNameAgent)))
}

// podSecurity satisfies the Pod Security level "restricted". The volume is
// given to the server's group at mount, and only if its root is not yet:
// walking all files at each mount takes long on large volumes.
func podSecurity() *corev1ac.PodSecurityContextApplyConfiguration {
	return corev1ac.PodSecurityContext().
		WithRunAsNonRoot(true).
		WithRunAsUser(name.ServerUID).
		WithRunAsGroup(name.ServerUID).
		WithFSGroup(name.ServerUID).
		WithFSGroupChangePolicy(corev1.FSGroupChangeOnRootMismatch).
		WithSeccompProfile(corev1ac.SeccompProfile().WithType(corev1.SeccompProfileTypeRuntimeDefault))
}

func containerSecurity() *corev1ac.SecurityContextApplyConfiguration {
	return corev1ac.SecurityContext().
		WithAllowPrivilegeEscalation(false).
		WithReadOnlyRootFilesystem(true).
		WithCapabilities(corev1ac.Capabilities().WithDrop("ALL"))
}

// chownSecurity is root with nothing but the right to enter any directory and
// to give files away.
func chownSecurity() *corev1ac.SecurityContextApplyConfiguration {
	security := containerSecurity().WithRunAsNonRoot(false).WithRunAsUser(0).WithRunAsGroup(0)
	security.Capabilities.WithAdd("CHOWN", "DAC_READ_SEARCH")
	return security
}
