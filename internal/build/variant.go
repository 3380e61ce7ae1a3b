package build

// variant is empty in every release. A build that sets it by
// -ldflags "-X valkey.io/valkey-operator/internal/build.variant=NAME" renders
// pods with one more annotation and settings with one more line, as the next
// release might: so it can be shown that other rendering alone replaces no pod.
var variant string

// annotationVariant stands on pods of such builds.
const annotationVariant = "valkey.io/build-variant"

func variantAnnotations() map[string]string {
	if variant == "" {
		return nil
	}
	return map[string]string{annotationVariant: variant}
}

func variantSettings() []string {
	if variant == "" {
		return nil
	}
	return []string{"# " + annotationVariant + " " + variant, "tcp-backlog 512"}
}
