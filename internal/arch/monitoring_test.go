package arch

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"
)

// personal are the parts of the runbook whose reasons need a person sooner or later.
var personal = []string{"Somebody has to decide", "Growing is refused", "A disk fills up"}

var (
	metricName  = regexp.MustCompile(`\bvalkey_[a-z_]+`)
	metricMade  = regexp.MustCompile(`"(valkey_[a-z_]+)"`)
	reasonAsked = regexp.MustCompile(`reason="([A-Za-z]+)"`)
)

// alert is one rule of the example alerts.
type alert struct {
	Alert       string            `json:"alert"`
	Expr        string            `json:"expr"`
	For         string            `json:"for"`
	Labels      map[string]string `json:"labels"`
	Annotations map[string]string `json:"annotations"`
}

func alerts(t *testing.T) []alert {
	t.Helper()
	var file struct {
		Groups []struct {
			Name  string  `json:"name"`
			Rules []alert `json:"rules"`
		} `json:"groups"`
	}
	if err := yaml.UnmarshalStrict([]byte(text(t, "config", "monitoring", "alerts.yaml")), &file); err != nil {
		t.Fatal(err)
	}
	var all []alert
	for _, group := range file.Groups {
		all = append(all, group.Rules...)
	}
	if len(all) == 0 {
		t.Fatal("there are no alerts")
	}
	return all
}

func text(t *testing.T, path ...string) string {
	t.Helper()
	content, err := os.ReadFile(filepath.Join(append([]string{root}, path...)...))
	if err != nil {
		t.Fatal(err)
	}
	return string(content)
}

// metricsMade are the metrics that the controllers have.
func metricsMade(t *testing.T) []string {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(root, "internal", "controller", "metrics*.go"))
	if err != nil {
		t.Fatal(err)
	}
	var made []string
	for _, file := range files {
		for _, match := range metricMade.FindAllStringSubmatch(text(t, strings.TrimPrefix(file, root)), -1) {
			made = append(made, match[1])
		}
	}
	if len(made) == 0 {
		t.Fatal("the controllers have no metrics")
	}
	slices.Sort(made)
	return made
}

func TestEveryMetricIsExplained(t *testing.T) {
	t.Parallel()
	explained := metricName.FindAllString(text(t, "docs", "monitoring.md"), -1)
	slices.Sort(explained)
	if explained, made := slices.Compact(explained), metricsMade(t); !slices.Equal(explained, made) {
		t.Errorf("docs/monitoring.md explains %v, there are %v", explained, made)
	}
}

// An alert that asks for what does not exist never fires.
func TestEveryAlertAsksForWhatThereIs(t *testing.T) {
	t.Parallel()
	var known []string
	for _, reason := range reasons(t) {
		known = append(known, reason)
	}
	made := metricsMade(t)
	for _, alert := range alerts(t) {
		for _, metric := range metricName.FindAllString(alert.Expr, -1) {
			if !slices.Contains(made, metric) {
				t.Errorf("alert %s asks for %s, which is no metric", alert.Alert, metric)
			}
		}
		for _, match := range reasonAsked.FindAllStringSubmatch(alert.Expr, -1) {
			if alert.Labels["reason"] != match[1] {
				t.Errorf("alert %s asks for %s and bears %s", alert.Alert, match[1], alert.Labels["reason"])
			}
		}
		if !slices.Contains(known, alert.Labels["reason"]) || alert.Annotations["summary"] == "" || alert.Labels["severity"] == "" {
			t.Errorf("alert %s: %+v", alert.Alert, alert)
		}
	}
}

func TestEveryReasonThatNeedsAPersonHasAnAlert(t *testing.T) {
	t.Parallel()
	alerted := map[string]bool{}
	for _, alert := range alerts(t) {
		alerted[alert.Labels["reason"]] = true
	}
	parts := strings.Split(text(t, "docs", "runbook.md"), "\n## ")
	found := 0
	for _, part := range parts {
		title, body, _ := strings.Cut(part, "\n")
		if !slices.Contains(personal, title) {
			continue
		}
		found++
		for _, match := range heading.FindAllStringSubmatch(body, -1) {
			if !alerted[match[1]] {
				t.Errorf("config/monitoring/alerts.yaml has no alert for %s", match[1])
			}
		}
	}
	if found != len(personal) {
		t.Errorf("docs/runbook.md has %d of the parts %q", found, personal)
	}
}
