import pytest
from hypothesis import given
from hypothesis import strategies as st

from splitter.errors import ProductNameError
from splitter.keywords import MAX_KEYWORDS, MAX_PRODUCTS, keyword_sets_of, keywords_of, product_query


@pytest.mark.parametrize(
    ("name", "keywords"),
    [
        ("金领冠", "伊利&金领冠"),
        ("伊利金领冠", "伊利&金领冠"),
        ("安慕希", "伊利&安慕希"),
        ("莫斯利安", "光明&莫斯利安"),
        ("纯甄", "蒙牛&纯甄"),
        ("特仑苏 Mengniu", "特仑苏&Mengniu"),
        ("伊利QQ星营养果汁酸奶草莓味 200ml", "伊利&QQ星&果汁酸奶&草莓味"),
        ("【7月产】蒙牛特仑苏纯牛奶苗条装250ml*12 盒", "蒙牛&特仑苏&纯牛奶"),
        ("包邮伊利安慕希 希腊风味酸奶 草莓味 205g*12盒*2提 新日期", "伊利&安慕希&希腊风味酸奶&草莓味"),
        ("伊利中老年奶粉1000g*2罐男女士老人成人高钙营养牛奶粉冲饮送礼", "伊利&中老年&奶粉&高钙"),
        ("伊利中老年高钙低脂奶粉(袋装)1x16x400g", "伊利&中老年&高钙低脂&奶粉"),
        ("【包邮】【4袋减8元】雀巢中老年营养奶粉400克gx2袋【6袋送礼】", "雀巢&中老年&奶粉"),
        ("2罐包邮,雅培益力佳400克,20年3月", "雅培&益力佳"),
        ("简爱 裸酸奶原味1.08kg×3瓶", "简爱&裸酸奶"),
        ("荷兰原装进口aptamil爱他美奶粉1段 8-36个月", "aptamil&爱他美&奶粉"),
        ("光明牛奶 光明 牛奶", "光明&牛奶"),
        ("【蒙牛纯牛奶】", "蒙牛&纯牛奶"),
        ("方正（Founder）FX6135", "方正&Founder&FX6135"),
        ("伊利QQ星营养果浆酸奶饮品芒果百香果桃100ml*30瓶整箱学生营养", "伊利&QQ星&果浆酸奶"),
        ("吉利汽车 帝豪GL", "吉利&帝豪&GL"),
        ("长城汽车 哈弗H6", "长城&哈弗&H6"),
        ("日本马桶盖", "日本&马桶盖"),
        ("奶", "奶"),
    ],
)
def test_what_identifies_a_product_stays(name, keywords):
    assert "&".join(keywords_of(name)) == keywords


@pytest.mark.parametrize(
    ("name", "keywords"),
    [
        ("iPhone 15 Pro", "iPhone 15 Pro"),
        ("苹果 iPhone 15 Pro Max 256GB", "苹果&iPhone 15 Pro Max"),
        ("小米14", "小米 14"),
        ("华为Mate60 Pro", "华为&Mate60 Pro"),
        ("索尼WH-1000XM5", "索尼&WH-1000XM5"),
        ("极氪007", "极氪&007"),
        ("标致2008", "标致 2008"),
        ("宝马3系", "宝马&3系"),
        ("aptamil爱他美", "aptamil&爱他美"),
        ("SK-II神仙水", "SK-II&神仙水"),
        ("3M口罩", "3M&口罩"),
        ("Ｎｅｓｔｌé　雀巢　奶粉", "Nestlé&雀巢&奶粉"),
        ("蒙牛🥛早餐奶", "蒙牛&早餐奶"),
        ("蒙牛\u200b早\x07餐奶\ud83e", "蒙牛&早餐奶"),
        ("蒙牛純牛奶", "蒙牛&纯牛奶"),
        ("優酸乳", "伊利&优酸乳"),
        ("乾酪", "干酪"),
        ("ソニー ヘッドホン", "ソニー&ヘッドホン"),
        ("삼성 갤럭시", "삼성&갤럭시"),
    ],
)
def test_any_way_of_writing_works(name, keywords):
    assert "&".join(keywords_of(name)) == keywords


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("", "empty"),
        (" \u3000\t", "empty"),
        ("牛" * 201, "at most 200"),
        ("250ml*12", "--keywords"),
        ("包邮 促销 礼盒", "--keywords"),
        ("1段", "--keywords"),
        ("!!!…🥛", "--keywords"),
    ],
)
def test_a_name_without_a_query_is_refused(name, said):
    with pytest.raises(ProductNameError, match=said):
        keywords_of(name)


def test_200_characters_are_taken():
    assert keywords_of("牛奶" * 100) == ("牛奶",)


def test_given_keywords_are_kept_as_they_are():
    assert keywords_of("包邮", override=[" ２５０ml ", "包邮", "250ML", ""]) == ("250ml", "包邮")
    with pytest.raises(ProductNameError, match="no keyword is given"):
        keywords_of("特仑苏", override=[" "])


def test_a_compound_of_a_title_is_two_words_where_its_head_is_likelier():
    title = "新鲜出口 糖水 黄桃 农家 水果罐头 礼盒 整箱 特价 休闲 零食 包邮 送礼 家庭装"
    asked = {word for words in keyword_sets_of(title) for word in words}
    assert asked >= {"罐头", "礼盒"}
    assert "水果罐头" not in asked
    assert keywords_of("黄桃 水果罐头 礼盒") == ("黄桃", "水果罐头")


def test_of_several_words_for_one_thing_each_is_asked_by_itself():
    query = product_query("艾美特电暖器取暖器家用节能省电暖风机浴室暖气片小太阳烤火炉HC22")
    kinds = [set(words) - {"艾美特", "HC22"} for words in query.keyword_sets]
    assert len(kinds) > 1
    assert all({"艾美特", "HC22"} <= set(words) for words in query.keyword_sets)
    assert all(len(kind) == 1 for kind in kinds)
    assert len(set.union(*kinds)) == len(kinds) <= MAX_PRODUCTS
    assert product_query("光明高钙牛奶").keyword_sets == (("光明", "高钙", "牛奶"),)
    assert product_query("光明高钙牛奶", keywords=["光明"]).keyword_sets == (("光明",),)


def test_the_second_name_of_a_brand_is_asked_in_a_query_of_its_own():
    query = product_query("华为 HUAWEI Mate 30 青春版 6GB 手机")
    assert "华为" in query.keywords
    assert "HUAWEI" not in query.keywords
    (second,) = [words for words in query.keyword_sets if "HUAWEI" in words]
    assert set(second) == {*query.keywords, "HUAWEI"} - {"华为"}


@pytest.mark.parametrize(
    ("name", "keywords"),
    [
        ("兰蔻小黑瓶", "兰蔻&小黑瓶"),
        ("元气森林气泡水", "元气森林&气泡水"),
        ("九阳吐司机", "九阳&吐司机"),
        ("卫龙大面筋", "卫龙&大面筋"),
        ("蜜雪冰城柠檬水", "蜜雪冰城&柠檬水"),
        ("蔻驰", "蔻驰"),
        ("好望水山楂汁", "好望水&山楂汁"),
        ("布洛芬缓释胶囊", "布洛芬&缓释&胶囊"),
        ("双汇火腿肠80g双汇", "双汇&火腿肠"),
        ("玫瑰纯露500ml天然", "玫瑰&纯露"),
    ],
)
def test_no_keyword_is_a_part_of_a_word(name, keywords):
    assert "&".join(keywords_of(name)) == keywords


def test_the_short_word_of_a_longer_one_is_asked_last():
    earphones = product_query("漫步者X3真无线蓝牙耳机新款入耳式游戏运动跑步耳机超长续航")
    assert earphones.keyword_sets == (("漫步者", "X3", "蓝牙耳机"), ("漫步者", "X3", "耳机"))
    case = product_query("钻石画5d新款玫瑰满钻十字绣手机壳保护套手机支架支架批发")
    kinds = {word for words in case.keyword_sets for word in words}
    assert "手机壳" in kinds
    assert "手机" not in kinds


@given(st.text(max_size=60) | st.text("光明牛奶特仑苏蒙QQ星iPhone15 段ml*【】()纯甄酸", max_size=40))
def test_keywords_of_any_text(name):
    try:
        words = keywords_of(name)
    except ProductNameError:
        return
    folded = [word.casefold() for word in words]
    assert 1 <= len(words) <= MAX_KEYWORDS
    assert all(word == word.strip() != "" for word in words)
    assert len(set(folded)) == len(folded)
    assert keywords_of(name) == words
    for word in words:
        word.encode()  # no half of a surrogate pair reaches a URL


def test_every_dairy_name_gives_few_and_clean_keywords(dairy_names):
    unwanted = ("盒", "包邮", "促销", "ml", "日期", "礼", "装", "产", "段")
    for name in dairy_names:
        words = keywords_of(name)
        assert not [word for word in words if any(part in word for part in unwanted) and word != "金装"], name
        assert not any(word[0].isdigit() for word in words), name


@pytest.mark.parametrize(
    ("name", "keywords"),
    [
        # Names stay whole.
        ("比亚迪秦PLUS DM-i", "比亚迪&秦 PLUS&DM-i"),
        ("比亚迪汉2025款", "比亚迪&汉"),
        ("华为Mate 70 Pro+", "华为&Mate 70 Pro+"),
        ("三星S25+手机壳", "三星&S25+&手机壳"),
        ("一加13T", "一加&13T"),
        ("小米 13T Pro", "小米&13T Pro"),
        ("希捷2T移动硬盘", "希捷&移动硬盘"),
        ("马自达昂克赛拉", "马自达&昂克赛拉"),
        ("斯柯达柯迪亚克", "斯柯达&柯迪亚克"),
        ("红蛮腰水乳", "红蛮腰&水乳"),
        ("霸王茶姬伯牙绝弦", "霸王茶姬&伯牙绝弦"),
        # What identifies is never dropped: a number that is the brand, a network, a version, a class.
        ("502胶水", "502&胶水"),
        ("84消毒液", "84&消毒液"),
        ("84消毒液 500ml*2瓶", "84&消毒液"),
        ("555电池", "555&电池"),
        ("8848手机", "8848&手机"),
        ("5100矿泉水", "5100&矿泉水"),
        ("361°跑鞋", "361&跑鞋"),
        ("24色水彩笔", "水彩笔"),
        ("2025羽绒服", "羽绒服"),
        ("小米5G手机", "小米&5G&手机"),
        ("4G路由器", "4G&路由器"),
        ("华为5G WiFi", "华为&5G&WiFi"),
        ("2.4G鼠标", "2.4G&鼠标"),
        ("云南5g茶叶", "云南&茶叶"),
        ("8G内存条", "内存条"),
        ("7天酒店", "7天酒店"),
        ("7度空间卫生巾", "七度空间&卫生巾"),
        ("6个核桃", "养元&六个核桃"),
        ("360安全卫士", "360&安全卫士"),
        ("奶粉360g", "奶粉"),
        ("特步160X 6.0", "特步&160X 6.0"),
        ("奔驰C级", "奔驰&C级"),
        ("宝马5系", "宝马&5系"),
        ("南孚5号电池", "南孚&5号&电池"),
        ("皇家一号", "皇家一号"),
        ("i.d.", "i.d."),
        ("A.P.C.外套", "A.P.C.&外套"),
        ("一加 15", "一加 15"),
        ("iQOO 15", "iQOO 15"),
        ("OnePlus 15", "OnePlus 15"),
        ("标致 2008", "标致 2008"),
        ("标致2025款", "标致"),
        ("荣耀500手机壳", "荣耀 500&手机壳"),
        ("小米17 Ultra", "小米&17 Ultra"),
        ("移动硬盘7天无理由退货", "移动硬盘&无理由&退货"),
        # Names that the dictionary of the segmenter lacks are whole.
        ("春秋航空", "春秋航空"),
        ("春秋航空客服", "春秋航空"),
        ("智联招聘", "智联招聘"),
        ("蛋仔派对盲盒", "蛋仔派对&盲盒"),
        ("平安银行信用卡", "平安银行&信用卡"),
        ("王者荣耀", "王者荣耀"),
        ("王者荣耀手办", "王者荣耀&手办"),
        ("荣耀Magic7", "荣耀&Magic7"),
        ("QQ飞车手游", "QQ飞车&手游"),
        ("85度C蛋糕", "85度C&蛋糕"),
        ("B站", "B站"),
        ("小牛电动车NXT", "小牛&电动车&NXT"),
        # Two words that no dictionary has are one name behind a brand, unless both are goods.
        ("喜茶多肉葡萄", "喜茶&多肉葡萄"),
        ("霸王茶姬万里木兰", "霸王茶姬&万里木兰"),
        ("泡泡玛特Labubu心底密码", "泡泡玛特&Labubu&心底密码"),
        ("九阳静音破壁机", "九阳&静音&破壁机"),
        ("康师傅老坛酸菜牛肉面", "康师傅&老坛&酸菜&牛肉面"),
        ("星巴克拿铁蛋糕", "星巴克&拿铁&蛋糕"),
        # Words of a sale are none; a platform in front stays.
        ("京东国补空调", "京东&空调"),
        ("国补京东空调", "京东&空调"),
        ("京东秒杀", "京东"),
        ("京东超市", "京东超市"),
        ("拼多多百亿补贴", "拼多多"),
        ("华为Mate80满减", "华为&Mate80"),
        ("双11珀莱雅双抗精华", "珀莱雅&双抗&精华"),
        ("美的空调以旧换新", "美的&空调"),
        # A digit alone is no keyword.
        ("认养一头牛0蔗糖酸奶", "认养一头牛&0蔗糖&酸奶"),
        ("九阳0涂层电饭煲", "九阳&0涂层&电饭煲"),
        # Colour, edition, year and form are none.
        ("iPhone 17 Air 天蓝色", "iPhone 17 Air"),
        ("华为Mate 70 Pro 曜石黑", "华为&Mate 70 Pro"),
        ("iPhone 17 Pro Max 星宇橙色", "iPhone 17 Pro Max"),
        ("小米17 Pro Max 背屏版", "小米&17 Pro Max"),
        ("豆包App", "豆包"),
        ("2025款特斯拉Model Y", "特斯拉&Model Y"),
        ("特斯拉Model Y 2025", "特斯拉&Model Y"),
        ("欧诗漫红蛮腰水乳套装", "欧诗漫&红蛮腰&水乳"),
        ("小米13青春版", "小米 13&青春版"),
        ("抖音极速版", "抖音&极速版"),
        # A platform is a brand if it opens a name without another one.
        *((name, name) for name in ("拼多多", "淘宝", "京东", "天猫", "抖音", "12306")),
        ("铁路12306", "12306"),
        ("拼多多客服", "拼多多"),
        ("京东物流", "京东&物流"),
        ("顺丰同城急送", "顺丰&同城急送"),
        ("京东蒙牛纯牛奶", "蒙牛&纯牛奶"),
        ("蒙牛纯牛奶 天猫", "蒙牛&纯牛奶"),
    ],
)
def test_names_of_today(name, keywords):
    assert "&".join(keywords_of(name)) == keywords
