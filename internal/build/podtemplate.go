package build

import (
	"encoding/json"
	"maps"
	"strconv"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	corev1ac "k8s.io/client-go/applyconfigurations/core/v1"

	"valkey.io/valkey-operator/api/v1alpha1"
	"valkey.io/valkey-operator/internal/name"
)

// Names of the pod's volumes.
const (
	volumeData   = "data"
	volumeAgent  = "agent"
	volumeConfig = "config"
	volumeACL    = "acl"
	volumeSystem = "system"
	volumeRun    = "run"
)

const (
	// agentInImage is where the operator's image keeps the agent.
	agentInImage = "/agent"

	// secretMode lets the owner and the pod's fsGroup read, nobody else.
	secretMode = 0o440
)

// Sizes of the volumes that live in memory and on the worker's disk.
var (
	runSize   = resource.MustParse("4Mi")  // a rendered valkey.conf and small state files
	agentSize = resource.MustParse("64Mi") // one binary, of some 10 MiB
)

// podTemplate is the pod of a member, the same for both kinds of workload.
func podTemplate(member Member) *corev1ac.PodTemplateSpecApplyConfiguration {
	template := member.Spec.Template
	pod := corev1ac.PodSpec().
		WithInitContainers(initContainers(member)...).
		WithContainers(serverContainer(member)).
		WithVolumes(volumes(member)...).
		WithSecurityContext(podSecurity()).
		WithAutomountServiceAccountToken(false).
		WithEnableServiceLinks(false).
		WithTerminationGracePeriodSeconds(gracePeriod(member))
	for _, secret := range template.ImagePullSecrets {
		pod.WithImagePullSecrets(corev1ac.LocalObjectReference().WithName(secret.Name))
	}
	schedule(pod, member)
	return corev1ac.PodTemplateSpec().WithLabels(member.Labels()).WithAnnotations(podAnnotations(member)).WithSpec(pod)
}

// podAnnotations say which template a pod was made from.
func podAnnotations(member Member) map[string]string {
	annotations := map[string]string{name.AnnotationTemplateRevision: member.Spec.Template.Revision}
	maps.Copy(annotations, variantAnnotations())
	return annotations
}

func initContainers(member Member) []*corev1ac.ContainerApplyConfiguration {
	template := member.Spec.Template
	containers := []*corev1ac.ContainerApplyConfiguration{
		agentContainer(template, name.ContainerInstallAgent, "install", name.PathAgent).
			WithSecurityContext(containerSecurity()).
			WithVolumeMounts(mount(volumeAgent, name.PathAgent)),
	}
	if template.VolumePermissions {
		id := strconv.Itoa(name.ServerUID)
		containers = append(containers,
			agentContainer(template, name.ContainerVolumePermissions, "chown", name.PathData, id, id).
				WithSecurityContext(chownSecurity()).
				WithVolumeMounts(mount(volumeData, name.PathData)))
	}
	return containers
}

// agentContainer runs the agent of the operator's image. It has the server's
// resources: init containers run before it, so the pod needs no more, keeps
// its quality-of-service class, and passes a quota that the server passes.
func agentContainer(template v1alpha1.NodeTemplate, container string, arguments ...string) *corev1ac.ContainerApplyConfiguration {
	return corev1ac.Container().
		WithName(container).
		WithImage(template.AgentImage).
		WithCommand(append([]string{agentInImage}, arguments...)...).
		WithResources(resources(template.Resources))
}

func serverContainer(member Member) *corev1ac.ContainerApplyConfiguration {
	template := member.Spec.Template
	container := corev1ac.Container().
		WithName(name.ContainerServer).
		WithImage(template.Image).
		WithCommand(serverCommand(member)...).
		WithEnv(corev1ac.EnvVar().WithName("POD_IP").WithValueFrom(corev1ac.EnvVarSource().
			WithFieldRef(corev1ac.ObjectFieldSelector().WithAPIVersion("v1").WithFieldPath("status.podIP")))).
		WithPorts(
			port(name.PortNameClient, name.PortClient),
			port(name.PortNameClusterBus, name.PortClusterBus),
			port(name.PortNameAgent, name.PortAgent)).
		WithResources(resources(template.Resources)).
		WithSecurityContext(containerSecurity()).
		WithVolumeMounts(
			mount(volumeData, name.PathData),
			mount(volumeAgent, name.PathAgent).WithReadOnly(true),
			mount(volumeConfig, name.PathConfig).WithReadOnly(true),
			mount(volumeACL, name.PathACL).WithReadOnly(true),
			mount(volumeSystem, name.PathSystem).WithReadOnly(true),
			mount(volumeRun, name.PathRun))
	if template.ImagePullPolicy != "" {
		container.WithImagePullPolicy(template.ImagePullPolicy)
	}
	return withProbes(container)
}

func serverCommand(member Member) []string {
	command := []string{
		name.PathAgent + "/agent", "run",
		"--cluster-id", member.Spec.ClusterID,
		"--shard", strconv.Itoa(int(member.Spec.Shard)),
		"--node", strconv.Itoa(int(member.Spec.Node)),
		"--peers", name.HeadlessService(member.Spec.ClusterName),
		"--data", name.PathData,
		"--config", name.PathConfig + "/" + name.ConfigFile(member.Spec.Template.ConfigRevision),
		"--members", name.PathConfig + "/" + name.KeyMembers,
		"--acl", name.PathACL + "/" + name.KeyACL,
		"--passwords", name.PathSystem,
		"--run", name.PathRun,
	}
	if !member.Spec.Storage.Enabled {
		command = append(command, "--ephemeral")
	}
	return command
}

func port(portName string, number int32) *corev1ac.ContainerPortApplyConfiguration {
	// The protocol is part of the list's key, so it is spelled out.
	return corev1ac.ContainerPort().WithName(portName).WithContainerPort(number).WithProtocol(corev1.ProtocolTCP)
}

// mount mounts whole directories only: a subPath would never see an update.
func mount(volume, path string) *corev1ac.VolumeMountApplyConfiguration {
	return corev1ac.VolumeMount().WithName(volume).WithMountPath(path)
}

func volumes(member Member) []*corev1ac.VolumeApplyConfiguration {
	cluster := member.Spec.ClusterName
	return []*corev1ac.VolumeApplyConfiguration{
		dataVolume(member.Spec.Storage),
		corev1ac.Volume().WithName(volumeAgent).WithEmptyDir(corev1ac.EmptyDirVolumeSource().WithSizeLimit(agentSize)),
		corev1ac.Volume().WithName(volumeConfig).WithConfigMap(corev1ac.ConfigMapVolumeSource().WithName(name.Service(cluster))),
		secretVolume(volumeACL, name.ACLSecret(cluster)),
		secretVolume(volumeSystem, name.PasswordsSecret(cluster)),
		corev1ac.Volume().WithName(volumeRun).WithEmptyDir(corev1ac.EmptyDirVolumeSource().
			WithMedium(corev1.StorageMediumMemory).WithSizeLimit(runSize)),
	}
}

func dataVolume(storage v1alpha1.NodeStorage) *corev1ac.VolumeApplyConfiguration {
	volume := corev1ac.Volume().WithName(volumeData)
	if !storage.Enabled {
		return volume.WithEmptyDir(corev1ac.EmptyDirVolumeSource())
	}
	return volume.WithPersistentVolumeClaim(corev1ac.PersistentVolumeClaimVolumeSource().WithClaimName(storage.ClaimName))
}

func secretVolume(volume, secret string) *corev1ac.VolumeApplyConfiguration {
	return corev1ac.Volume().WithName(volume).
		WithSecret(corev1ac.SecretVolumeSource().WithSecretName(secret).WithDefaultMode(secretMode))
}

func resources(wanted corev1.ResourceRequirements) *corev1ac.ResourceRequirementsApplyConfiguration {
	return configurationOf[corev1ac.ResourceRequirementsApplyConfiguration](wanted)
}

// configurationOf is the apply configuration with the fields of a value of the
// API: both have the same JSON form, so it cannot fail for values that an API
// server accepted.
func configurationOf[T any](value any) *T {
	configuration := new(T)
	text, err := json.Marshal(value)
	if err == nil {
		err = json.Unmarshal(text, configuration)
	}
	if err != nil {
		panic("two forms of one API type differ: " + err.Error())
	}
	return configuration
}
