; Columns in, anomalies out: Elle's checkers for transactions over lists and registers.
(ns wrackline.elle
  (:require [elle.list-append :as list-append]
            [elle.rw-register :as rw-register]
            [jepsen.history :as h]))

(defn micro-op
  [^longs kinds ^longs keys ^longs a ^longs b ^longs flat nothing seen? i]
  (let [k (aget keys (int i)), x (aget a (int i))]
    (case (int (aget kinds (int i)))
      0 [:append k x]
      1 [:w k x]
      2 [:r k (when (and seen? (not= x nothing)) x)]
      3 [:r k (when (and seen? (not= x nothing))
                (mapv #(aget flat (int %)) (range x (aget b (int i)))))])))

(defn history
  "`order`: rows in the order of events, a completion as -1 - row; transaction `row` has the micro-operations
  [starts row, starts row + 1), `outcome` 0 ok, 1 fail, 2 unknown."
  [^longs order ^longs process ^longs outcome ^longs starts kinds keys a b flat nothing]
  (h/history
    (mapv (fn [index at]
            (let [row (int (if (neg? at) (- -1 at) at))
                  done? (neg? at)
                  type (if done? (nth [:ok :fail :info] (aget outcome row)) :invoke)]
              {:index index
               :time index
               :process (aget process row)
               :type type
               :f :txn
               :value (mapv #(micro-op kinds keys a b flat nothing (= type :ok) %)
                            (range (aget starts row) (aget starts (inc row))))}))
          (range)
          order)))

(defn operations
  "Indexes of the events that a case names, at most 16."
  [case]
  ; A sorted map of numbers (what was seen twice, and how often) cannot be asked for a keyword.
  (->> (tree-seq coll? seq case)
       (filter #(and (map? %) (not (sorted? %)) (:process %) (:index %)))
       (map :index)
       distinct
       (take 16)
       vec))

(defn told [value]
  (binding [*print-length* 12 *print-level* 8]
    (let [text (pr-str value)]
      (subs text 0 (min 600 (count text))))))

(defn check
  "[valid? [[type count [[indexes text] ...]] ...] [refuted models]]: 1 valid, 0 not, -1 unknown."
  [model consistency timeout-ms & columns]
  (let [options {:consistency-models [(keyword consistency)] :cycle-search-timeout timeout-ms}
        events (apply history columns)
        result (case model
                 "list-append" (list-append/check options events)
                 "rw-register" (rw-register/check options events))
        anomalies (for [[type cases] (:anomalies result)]
                    (let [cases (if (sequential? cases) cases [cases])]
                      [(name type) (count cases)
                       (mapv (fn [one] [(operations one) (told (or (:steps one) one))]) (take 3 cases))]))]
    [(case (:valid? result) true 1 false 0 -1)
     (vec anomalies)
     (mapv name (:not result))]))
